"""ISO 3166 codes and names of countries, in lower case.

A country has several names, because GeoIP databases name some of them differently, and change names over time.
"""

_TEXT = """
    ad andorra; ae united arab emirates; af afghanistan; ag antigua and barbuda; ai anguilla; al albania; am
    armenia; ao angola; aq antarctica; ar argentina; as american samoa; at austria; au australia; aw aruba; ax
    åland|åland islands|aland islands; az azerbaijan; ba bosnia and herzegovina; bb barbados; bd bangladesh; be
    belgium; bf burkina faso; bg bulgaria; bh bahrain; bi burundi; bj benin; bl saint barthélemy|st barthélemy|saint
    barthelemy; bm bermuda; bn brunei|brunei darussalam; bo bolivia|bolivia, plurinational state of|bolivia
    (plurinational state of); bq bonaire, sint eustatius, and saba|bonaire, sint eustatius and saba; br brazil; bs
    bahamas|the bahamas; bt bhutan; bv bouvet island; bw botswana; by belarus; bz belize; ca canada; cc cocos
    (keeling) islands|cocos islands; cd dr congo|congo dr|democratic republic of the congo|congo, the democratic
    republic of the|congo (the democratic republic of the); cf central african republic; cg congo republic|republic
    of the congo|congo; ch switzerland; ci ivory coast|côte d'ivoire|cote d'ivoire; ck cook islands; cl chile; cm
    cameroon; cn china; co colombia; cr costa rica; cu cuba; cv cabo verde|cape verde; cw curaçao|curacao; cx
    christmas island; cy cyprus; cz czechia|czech republic; de germany; dj djibouti; dk denmark; dm dominica; do
    dominican republic; dz algeria; ec ecuador; ee estonia; eg egypt; eh western sahara; er eritrea; es spain; et
    ethiopia; fi finland; fj fiji; fk falkland islands|falkland islands (malvinas); fm micronesia|federated states
    of micronesia|micronesia, federated states of|micronesia (federated states of); fo faroe islands; fr france; ga
    gabon; gb united kingdom; gd grenada; ge georgia; gf french guiana; gg guernsey; gh ghana; gi gibraltar; gl
    greenland; gm gambia|the gambia; gn guinea; gp guadeloupe; gq equatorial guinea; gr greece; gs south georgia and
    the south sandwich islands; gt guatemala; gu guam; gw guinea-bissau; gy guyana; hk hong kong; hm heard and
    mcdonald islands|heard island and mcdonald islands; hn honduras; hr croatia; ht haiti; hu hungary; id indonesia;
    ie ireland; il israel; im isle of man; in india; io british indian ocean territory; iq iraq; ir iran|iran,
    islamic republic of|iran (islamic republic of); is iceland; it italy; je jersey; jm jamaica; jo jordan|hashemite
    kingdom of jordan; jp japan; ke kenya; kg kyrgyzstan; kh cambodia; ki kiribati; km comoros; kn st kitts and
    nevis|saint kitts and nevis; kp north korea|korea, democratic people's republic of|korea (democratic people's
    republic of); kr south korea|republic of korea|korea, republic of|korea (republic of); kw kuwait; ky cayman
    islands; kz kazakhstan; la laos|lao people's democratic republic; lb lebanon; lc st lucia|saint lucia; li
    liechtenstein; lk sri lanka; lr liberia; ls lesotho; lt lithuania|republic of lithuania; lu luxembourg; lv
    latvia; ly libya; ma morocco; mc monaco; md moldova|republic of moldova|moldova, republic of|moldova (republic
    of); me montenegro; mf saint martin|saint martin (french part); mg madagascar; mh marshall islands; mk north
    macedonia|macedonia; ml mali; mm myanmar|burma; mn mongolia; mo macao|macau; mp northern mariana islands; mq
    martinique; mr mauritania; ms montserrat; mt malta; mu mauritius; mv maldives; mw malawi; mx mexico; my
    malaysia; mz mozambique; na namibia; nc new caledonia; ne niger; nf norfolk island; ng nigeria; ni nicaragua; nl
    netherlands|the netherlands; no norway; np nepal; nr nauru; nu niue; nz new zealand; om oman; pa panama; pe
    peru; pf french polynesia; pg papua new guinea; ph philippines; pk pakistan; pl poland; pm saint pierre and
    miquelon; pn pitcairn|pitcairn islands; pr puerto rico; ps palestine|palestinian territory|palestine, state
    of|palestine (state of); pt portugal; pw palau; py paraguay; qa qatar; re réunion|reunion; ro romania; rs
    serbia; ru russia|russian federation; rw rwanda; sa saudi arabia; sb solomon islands; sc seychelles; sd sudan;
    se sweden; sg singapore; sh saint helena|st helena|saint helena, ascension and tristan da cunha; si slovenia; sj
    svalbard and jan mayen; sk slovakia; sl sierra leone; sm san marino; sn senegal; so somalia; sr suriname; ss
    south sudan; st são tomé and príncipe|sao tome and principe; sv el salvador; sx sint maarten|sint maarten (dutch
    part); sy syria|syrian arab republic; sz eswatini|swaziland; tc turks and caicos islands; td chad; tf french
    southern territories; tg togo; th thailand; tj tajikistan; tk tokelau; tl timor-leste|east timor; tm
    turkmenistan; tn tunisia; to tonga; tr türkiye|turkey; tt trinidad and tobago; tv tuvalu; tw taiwan|taiwan,
    province of china|taiwan (province of china); tz tanzania|tanzania, united republic of|tanzania (united republic
    of); ua ukraine; ug uganda; um u.s. outlying islands|u.s. minor outlying islands|united states minor outlying
    islands; us united states|united states of america; uy uruguay; uz uzbekistan; va vatican city|vatican|holy
    see|holy see (vatican city state); vc st vincent and grenadines|saint vincent and the grenadines; ve
    venezuela|venezuela, bolivarian republic of|venezuela (bolivarian republic of); vg british virgin islands|virgin
    islands, british; vi u.s. virgin islands|virgin islands, u.s.; vn vietnam|viet nam; vu vanuatu; wf wallis and
    futuna; ws samoa; ye yemen; yt mayotte; za south africa; zm zambia; zw zimbabwe; xk kosovo
"""

NAMES: dict[str, list[str]] = {
    code: names.split("|")
    for code, _, names in (country.partition(" ") for country in " ".join(_TEXT.split()).split("; "))
}
ALL_NAMES = {name for names in NAMES.values() for name in names}
