"""Visits by people are counted and visits by programs are not."""

import re

from crawlerdetect.providers import exclusions

from linkmgr.visits import bots
from tests.support.shortlinks import Make
from tests.support.targets import Target

CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0"
ANDROID = "Mozilla/5.0 (Linux; Android 14; Pixel 8 Build/AP2A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0"
IOS = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"

PROGRAMS = (
    # HTTP libraries
    "Apache-HttpClient/4.5.14 (Java/17.0.2)",
    "Java-http-client/17.0.2",
    "Ktor client",
    "GuzzleHttp/7",
    "Faraday v2.9.0",
    "Ruby",
    "okhttp/4.12.0",
    "node",
    "Deno/2.5.0",
    "Bun/1.3.0",
    "Mozilla/5.0 (Windows NT 10.0; Microsoft Windows 10.0.19045; en-US) PowerShell/7.4.1",
    "WinHttp.WinHttpRequest.5",
    "reqwest/0.12",
    "fasthttp",
    "curl/8.14.1",
    "Wget/1.21.4",
    "python-requests/2.32.5",
    "Go-http-client/2.0",
    # API clients
    "PostmanRuntime/7.39.0",
    "insomnia/2023.5.8",
    # Load generators and scanners
    "k6/0.49.0 (https://k6.io/)",
    "Grafana k6/1.3.0",
    "hey/0.0.1",
    "oha/1.4.5",
    "wrk",
    "feroxbuster/2.10.1",
    "Fuzz Faster U Fool v2.1.0-dev",
    "Mozilla/5.0 (compatible; Nmap Scripting Engine; https://nmap.org/book/nse.html)",
    "Mozilla/5.0 (compatible; CensysInspect/1.1; +https://about.censys.io/)",
    # Automated browsers
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/140.0.0.0 Safari/537.36",
    f"Mozilla/5.0 (Linux; Android 11; moto g power (2022)) {CHROME} Mobile Safari/537.36 Chrome-Lighthouse",
    # Bots of search engines, language models, messengers and monitoring
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
    "TelegramBot (like TwitterBot)",
    "WhatsApp/2.23.20.0",
    "Iframely/1.3.1 (+https://iframely.com/docs/about)",
    "http.rb/5.2.0 (Mastodon/4.3.0; +https://mastodon.example/)",
    "Mozilla/5.0 (compatible; Cardyb/1.1; mailto:support@bsky.app)",
    "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
    "UptimeRobot/2.0",
    # Previews of the Fediverse and of chat programs
    *(
        FEDIVERSE := (
            "Lemmy/0.19.3; +https://lemmy.example",
            "Akkoma 3.13.2; https://akkoma.example <admin@akkoma.example>",
            "Friendica 'Giant Rhubarb' 2023.05-1518; https://friendica.example",
            "PeerTube/6.0.3 (+https://peertube.example)",
            "Mbin/1.7.1 (+https://mbin.example/agent)",
            "Misskey/2024.2.0 (https://misskey.example)",
            "Mozilla/5.0 (compatible; SummalyBot/5.2.0)",
            "(Pixelfed/0.11.9; +https://pixelfed.example)",
            "gotosocial/0.16 (+https://gts.example)",
            "Synapse (bot; +https://github.com/matrix-org/synapse)",
            "matrix-media-repo v1.3",
            "Mozilla/5.0 (compatible; Rocket.Chat/6.0)",
        )
    ),
    # Programs that fetch a link before a person opens it
    "Mozilla/4.0 (compatible; ms-office; MSOffice 16)",
    "Mozilla/4.0 (compatible; ms-office; MSOffice rmj)",
    "Microsoft Office Protocol Discovery",
    "Microsoft Office Existence Discovery",
    "Microsoft-WebDAV-MiniRedir/10.0.19045",
    "Google-Safety",
    "com.apple.WebKit.Networking/8620.1.16.10.11 CFNetwork/1568.300.101 Darwin/24.2.0",
    # Monitors and checkers of links
    "Amazon-Route53-Health-Check-Service (ref 1b2c3d4e; report http://amzn.to/1vsZADi)",
    "Blackbox Exporter/0.24.0",
    f"Mozilla/5.0 (X11; Linux x86_64) {CHROME} Safari/537.36 DatadogSynthetics",
    "Datadog/Synthetics",
    f"Mozilla/5.0 (compatible; Windows NT 10.0; Catchpoint) {CHROME} Safari/537.36",
    "linkinator/6.1.1",
    "lychee/0.15.1",
    "Consul Health Check",
    "Gatus/1.0",
)

PEOPLE = (
    f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {CHROME} Safari/537.36",
    f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {CHROME} Safari/537.36 Edg/142.0.0.0",
    f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {CHROME} Safari/537.36 OPR/124.0.0.0",
    f"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) {CHROME} Safari/537.36",
    f"Mozilla/5.0 (Linux; Android 14; Pixel 8) {CHROME} Mobile Safari/537.36",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:143.0) Gecko/20100101 Firefox/143.0",
    "Mozilla/5.0 (Android 14; Mobile; rv:143.0) Gecko/143.0 Firefox/143.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/26.0 Safari/605.1.15",
    f"{IOS} Version/18.5 Mobile/15E148 Safari/604.1",
    f"{IOS} CriOS/138.0.7204.53 Mobile/15E148 Safari/604.1",
    f"{IOS} GSA/370.0.0 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 14; SAMSUNG SM-S918B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/27.0 "
    "Chrome/125.0.0.0 Mobile Safari/537.36",
    "Opera/9.80 (Android; Opera Mini/36.2.2254/191.256; U; en) Presto/2.12.423 Version/12.16",
    "Mozilla/5.0 (Linux; U; Android 13; en-US; RMX3511) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 "
    "Chrome/100.0.4896.58 UCBrowser/13.4.0.1306 Mobile Safari/537.36",
    f"Mozilla/5.0 (Linux; Android 14; Pixel 8) {CHROME} Mobile DuckDuckGo/5 Safari/537.36",
    # Apps that show pages
    f"{IOS} Mobile/15E148 Instagram 390.0.0.28.85 (iPhone15,3; iOS 18_5; en_US; en; scale=3.00; 1290x2796; 770984486)",
    f"{IOS} Mobile/15E148 [FBAN/FBIOS;FBAV/520.0.0.38.101;FBBV/756352999;FBDV/iPhone15,3;FBMD/iPhone;FBSN/iOS]",
    f"{ANDROID} Chrome/127.0.6533.103 Mobile Safari/537.36 [FB_IAB/FB4A;FBAV/477.0.0.54.86;]",
    f"{ANDROID} Chrome/126.0.6478.122 Mobile Safari/537.36 trill_340304 JsSdk/1.0 NetType/WIFI "
    "AppName/musical_ly app_version/34.3.4 ByteLocale/en",
    f"{IOS} Mobile/15E148 musical_ly_34.8.0 JsSdk/2.0 NetType/WIFI WKWebView/1 BytedanceWebview/d8a21c6",
    f"{IOS} Mobile/15E148 Snapchat/13.40.0.43 (like Safari/8620.1.16.10.11, panda)",
    f"{IOS} Mobile/15E148 [LinkedInApp]/9.30.1234",
    f"{IOS} Mobile/15E148 [Pinterest/iOS]",
    f"{IOS} Mobile/15E148 Twitter for iPhone/10.40",
    f"{IOS} Mobile/15E148 MicroMessenger/8.0.49(0x18003137) NetType/WIFI Language/zh_CN",
    f"{ANDROID} Chrome/120.0.0.0 Mobile Safari/537.36 Viber/20.1",
    f"{ANDROID} Chrome/120.0.0.0 Mobile Safari/537.36 Telegram-Android/11.1 (Samsung SM-A515F; Android 13; SDK 33)",
    # A phone manufacturer, and the systems of apps for people
    f"Mozilla/5.0 (Linux; Android 9; CUBOT X19) {CHROME} Mobile Safari/537.36",
    "MobileSafari/8619.1.26 CFNetwork/1568.100.1 Darwin/24.0.0",
    "Dalvik/2.1.0 (Linux; U; Android 13; SM-G991B Build/TP1A.220624.014)",
)


def counted(target: Target, agents: tuple[str, ...]) -> list[str]:
    """Return the user agents whose visits are counted."""
    found = []
    for agent in agents:
        before = target.clicks
        target.visit(agent=agent)
        if target.clicks > before:
            found.append(agent)
    return found


def test_visits_by_programs_are_not_counted(target: Target) -> None:
    assert counted(target, PROGRAMS) == []


def test_visits_by_browsers_and_apps_of_people_are_counted(target: Target) -> None:
    assert counted(target, PEOPLE) == list(PEOPLE)


def test_programs_that_preview_links_get_the_card(short: Make) -> None:
    link = short(metatitle="Sale")
    assert [agent for agent in FEDIVERSE if "og:title" not in link.ask(agent=agent).text] == []
    assert [agent for agent in PEOPLE if link.ask(agent=agent).status_code != 302] == []


def test_python_searches_no_pattern_that_backtracks() -> None:
    """Python's engine takes 26 ms to search all patterns of bots in some user agents. Rust's takes linear time."""
    assert bots._PYTHON_MATCHER.pattern == "yandex(?!search)"
    assert bots._BROWSER_WORDS.pattern == "|".join(exclusions.data)
    assert [word for word in exclusions.data if re.search(r"[*+}]\)[*+{]", word)] == [], "a repetition of a repetition"
