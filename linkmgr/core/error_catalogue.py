"""The errors by code. Clients compare codes, so codes are stable."""

# By code: the status and the message, and between them the member that the error is about, if it is
# about one. Where resources name it differently, these are all its names.
# fmt: off
_LINES: dict[str, str | tuple[int, str, str]] = {
    # the request
    "invalid": "400 {problems}.",
    "value_refused": "400 A value in the request cannot be stored. Check the members of the body.",
    "bad_request": "400 The request is malformed. Check its URL, headers and body.",
    "address_too_long": "414 The URL is too long. The limit is 8 KiB.",
    "expectation_failed": "417 The Expect header is not supported. Remove it, or send 'Expect: "
    "100-continue'.",
    "headers_too_large": "431 The headers are too large. Send at most 100 headers of 8 KiB each, "
    "64 KiB in total.",
    "not_implemented": "501 The transfer encoding is not supported. Send the body with "
    "Content-Length, or with 'Transfer-Encoding: chunked'.",
    "not_json": "415 The body must be JSON. Send the header 'Content-Type: application/json'.",
    "request_timeout": "408 The request did not arrive within 10 seconds. Send it again.",
    "encoding_unsupported": "415 The body has a Content-Encoding, which the service does not read. "
    "Send it as it is.",
    "too_large": "413 The body is too large. The limit is 64 KiB.",
    "bulk_too_large": "413 The body is too large. The limit is 2 MiB. Send fewer rows at once.",
    "bulk_failed": "200 None of the {sent} elements could be carried out. Correct those in results.",
    "bulk_refused": "400 Nothing was changed, because {failed} of {sent} elements failed and "
    "atomic is true. Correct or remove those in results.",
    "page_too_long": "400 The rows up to the end of this page have more than 4 MiB. Send a limit "
    "of at most {rows}.",
    # uploads and imports
    "file_missing": "400 There is no file, or it is empty. Send a file as the body, or in a form.",
    "file_too_large": "413 The file is too large. The limit is 64 MiB; gzip makes a file smaller.",
    "form_too_large": "413 The form has more than 20 parts, or more than 64 KiB in its fields "
    "beside the file. Send only the file and the parameters of this operation.",
    "upload_timeout": "408 The file did not arrive within {deadline} seconds. Send it again, or "
    "compress it first.",
    "uploads_busy": "503 Too many requests that take long are in progress. Try again in {seconds} seconds.",
    "import_unrecognized": "400 The columns of this file are not recognized: {columns}. In "
    "mapping, set url to the name of the column that contains the target.",
    "import_unreadable": "400 {problem}",
    "import_inactive": "400 {problem}",
    "import_skipped": "400 {problem}",
    "import_not_paused": "409 This import does not wait. Only an import in the state paused can be "
    "continued.",
    "imports_full": "409 You have {number} unfinished imports. Wait until one ends, or cancel one.",
    "checks_off": "409 This service checks no targets. Ask its operator to set LINKMGR_LINK_CHECK.",
    # repeated and conditional requests
    "idempotency_key_invalid": "400 Idempotency-Key must have 1 to 255 printable ASCII characters. "
    "Send a new random value, such as a UUID, for each change.",
    "idempotency_key_in_use": "409 A request with this Idempotency-Key is still running. Repeat "
    "the request in a moment to get its response.",
    "idempotency_key_reused": "422 This Idempotency-Key belongs to another request. Repeat a "
    "request unchanged, or send a new key.",
    "etag_invalid": "400 If-Match must be ETags in double quotes, separated by commas, or '*'.",
    "changed_meanwhile": "412 The record has changed since you read it. Read it again, and repeat "
    "the change with its new ETag.",
    # the API key
    "key_missing": "401 The API key is missing. Send it in the header 'Authorization: Bearer "
    "API_KEY'.",
    "key_unknown": "401 The API key is invalid. Check for typing errors; it may also have been "
    "replaced, turned off or deleted.",
    "key_expired": "401 The API key has expired. Create a new one on your account page, or ask an "
    "administrator for one.",
    "account_suspended": "403 This account is suspended. Ask an administrator to reinstate it.",
    "metrics_token": "401 The metrics token is missing or wrong. Send LINKMGR_METRICS_TOKEN in the "
    "header 'Authorization: Bearer TOKEN'.",
    "address_not_allowed": "403 This API key cannot be used from your IP address. Add the address "
    "to allowed_ips of the key, or use another key.",
    "scope_missing": "403 This API key does not have the scope {scope}. Add it to the key, or use "
    "another key.",
    "key_confined": "403 This API key is limited to {limited}, and cannot use this operation. "
    "{remedy}",
    "domain_needed": (403, "domain",
        "This API key is limited to some of your branded domains. Send one of them as domain."),
    "key_exceeded": "403 A key can only create, change and delete keys with at most its own scopes "
    "and at least its own limits. Send fewer scopes or stricter limits, or use another key.",
    "admin_scope": (403, "scopes",
        "Only administrators can give the scope admin, with a key that has it. Remove admin from "
        "scopes."),
    "default_key_only": "400 You have no other API key that is valid. Add one before you turn off "
    "the default key.",
    "keys_full": "400 You have 100 API keys, which is the maximum. Delete a key that is not used, "
    "or change an existing one.",
    "utm_full": "400 You have 100 UTM templates, which is the maximum. Delete one, or change an "
    "existing one.",
    "owner_exceeded": (403, "role",
        "Only an API key without limits can make owners of the account. Send another role, or use "
        "another key."),
    "account_shared": "403 Other users work or have worked in this account, and may have this key. "
    "Change its e-mail address and password on the account page, or with the default key.",
    "members_full": "400 You have 500 members and invitations, which is the maximum. Remove one.",
    "invitation_open": (400, "email",
        "You have invited this e-mail address already. Withdraw that invitation to send a new one."),
    "invitation_spent": "410 This invitation has been accepted or withdrawn, or it is older than 7 "
    "days. Ask for a new one.",
    "own_invitation": "400 This is an invitation to your own account. Send it to the person whom you "
    "invite.",
    "member_already": "400 You work in this account already. The invitation can still be used by "
    "another person.",
    "domains_unknown": (400, "domains", "domains must contain only ids of your branded domains."),
    "administrators_only": "403 Only administrators can use this operation. Use an administrator's "
    "API key.",
    "role_reads": "403 Only owners of this account can open this page. Ask one of them.",
    "role_changes": "403 You can look at this, but not change it: your role in this account does not "
    "allow it. Ask one of its owners.",
    "account_switched": "409 You have switched to another account since you opened this page. Nothing "
    "was changed. Open the page again.",
    "account_lost": "403 You no longer work in that account: you were removed, or it is suspended. "
    "Nothing was changed. You see your own account from now on.",
    "administration_page": "403 Only administrators can open this page. Sign in as an "
    "administrator.",
    "rate_limited": "429 You have exceeded the limit of {limit} requests per {per}. Try again in "
    "{seconds} seconds.",
    "pages_limited": "429 You have opened more than {limit} pages per {per}. Try again in "
    "{seconds} seconds.",
    "rows_limited": "429 You have exceeded the limit of {limit} rows per {per}. Send fewer rows, "
    "or try again in {seconds} seconds.",
    # the URL
    "no_such_operation": "404 API operation not found. {hint}",
    "unknown_host": "404 This host name is not configured. Set LINKMGR_BASE_URL to use it for the "
    "service, or add it as a branded domain with POST /api/domain/add.",
    "no_such_page": "404 Page not found. Check the URL, or ask the person who sent it for a new "
    "one. The page may have been removed.",
    "redirect_loop": "508 This link redirects in a loop. Its owner must change the target.",
    "method_not_allowed": "405 The method {method} is not allowed for this URL. Allowed methods: "
    "{allowed}.{hint}",
    "missing": "404 There is no {what} with this id.",
    # plans
    "plan_feature": "403 Your plan does not include {detail}. Ask an administrator for another plan.",
    "plan_limit": "400 You have reached your plan's limit of {detail}. Delete one, or ask an "
    "administrator for another plan.",
    "plan_name_taken": (400, "name", "A plan with this name already exists. Choose another name."),
    "plan_not_premium": (400, "planid", "planid must be the id of a premium plan."),
    # campaigns and channels
    "campaign_name_taken": (400, "name", "You already have a campaign with that name."),
    "campaign_slug_taken": (400, "slug", "This slug is already in use. Choose another one."),
    "channel_name_taken": (400, "name", "You already have a channel with this name."),
    # links and bio pages
    "search_busy": "503 Too many requests that take long are in progress. Try again in {seconds} seconds.",
    "short_url_unknown": "200 You have no link with this short URL. Create one with POST "
    "/api/url/add.",
    "link_disabled": "410 This link has been turned off. Ask the person who sent it to you for a "
    "new one.",
    "blocked": "410 An administrator of this service has blocked this target, because it may be harmful.",
    "too_many_reports": "429 Too many reports from your IP address. Try again in {seconds} seconds.",
    "alias_reserved": (400, "custom alias",
        "The service has a page at this alias on its own host. Choose another one."),
    "alias_wide": (400, "domain",
        "The alias of this link has letters that aliases on this domain cannot have. Send another alias, or "
        "set widealiases of the domain."),
    "alias_taken": (400, "custom alias", "This alias is already in use. Choose another one."),
    "externalid_taken": (400, "externalid",
        "You already have a link with this externalid. Choose another one, or change that link with "
        "PUT /api/url/external/{{externalid}}."),
    "short_urls_full": "400 A link keeps at most 20 old short URLs. Remove some on its page first.",
    "domain_in_use": "400 This domain has links, perhaps in the bin. Delete them or move them to "
    "another domain first.",
    "domain_has_links": (400, "ignorecase",
        "ignorecase can only be changed while the domain has no links, also none in the bin and no old "
        "short URLs."),
    "domain_unknown": (400, "domain", "domain must be one of your branded domains."),
    "link_branded": (400, "url data",
        "A link cannot redirect to a branded domain, because this can cause a redirect loop."),
    "target_blocked": (400, "url links data",
        "The administrators of this service have blocked the host of a URL, or your link to it. "
        "Send another URL."),
    "starts_late": (400, "starts", "starts must be before expiry."),
    "refund_too_large": (400, "refund", "refund must not be larger than the value of the conversion."),
    "link_unknown": (400, "link", "link must be the id of one of your links."),
    "campaign_unknown": (400, "campaign", "campaign must be the id of one of your campaigns."),
    "splash_unknown": (400, "type", "type must refer to one of your splash pages."),
    "overlay_unknown": (400, "type", "type must refer to one of your overlays."),
    "pixel_unknown": (400, "pixels", "pixels must contain only ids of your pixels."),
    "channel_unknown": (400, "channel", "channel must be the id of one of your channels."),
    # exports
    "own_export_busy": "503 Another request of yours that takes long is in progress. Try again in "
    "{seconds} seconds.",
    "export_busy": "503 Too many requests that take long are in progress. Try again in {seconds} seconds.",
    # accounts
    "username_taken": (400, "username", "This username is already in use."),
    "email_taken": (400, "email", "This e-mail address is already in use."),
    "delete_self": "400 You cannot delete your own account. Ask another administrator.",
    "demote_self": (400, "admin", "You cannot take administration from yourself. Ask another administrator."),
    "last_administrator": (400, "admin", "There is no other administrator. Appoint one first."),
    "administrator_suspended": (400, "suspended",
        "An administrator cannot be suspended, nor a suspended user be one. Change one of them "
        "first."),
    "delete_last_administrator": "400 You cannot delete the last administrator. Add another "
    "administrator first.",
    # domains
    "domain_taken": (400, "domain", "This domain is already in use."),
    "domain_unproven": (400, "domain", "{host} {found}. Point it to the server of {base_url}, then try again."),
    "redirect_branded": "400 redirectroot and redirect404 cannot be on a branded domain, because "
    "this can cause a redirect loop.",
    # outbound fetches
    "fetch_refused": (400, "logo brandlogo",
        "Fetching from {host} is not allowed. Use a public host, on port 80 or 443."),
    "fetch_unresolved": (400, "logo brandlogo",
        "The host name {host} does not resolve to an IP address. Check its DNS records."),
    "fetch_unreachable": (400, "logo brandlogo",
        "Could not connect to {host}. Check that its web server is reachable."),
    "fetch_timed_out": (400, "logo brandlogo", "{host} did not respond within {deadline:g} seconds. Try again later."),
    "fetch_too_large": (400, "logo brandlogo", "The response from {host} is too large. The limit is 1 MiB."),
    "fetch_status": (400, "logo brandlogo",
        "{host} responded with status {status} instead of 200. At most {redirects} redirects are "
        "followed."),
    "fetches_limited": "429 You have exceeded the limit of {limit} requests to other hosts per "
    "hour. Try again in {seconds} seconds.",
    "fetch_busy": (503, "logo", "Too many requests that take long are in progress. Try again in {seconds} seconds."),
    # QR codes
    "colours_too_close": (400, "foreground",
        "The foreground and background colors are too similar. Choose colors with a contrast of at "
        "least 3 to 1. For example, change {change}."),
    "short_link_unknown": (400, "data",
        "data points to this service, but not to a short link or bio page. Check the short URL."),
    "logo_missing": (400, "logo brandlogo",
        "Logo not found. Use a URL, or the name of a file in the folder 'logos' of the service."),
    "logos_full": (400, "logo brandlogo",
        "Your logos have 32 MiB in total, which is the maximum. Use a smaller image, or delete QR "
        "codes whose logos are not needed, also those in the bin."),
    "logo_unusable": (400, "logo brandlogo", "logo must be a PNG or JPEG image of at most 4 megapixels and 1 MiB."),
    "image_busy": (503, "logo brandlogo",
        "Too many requests that take long are in progress. Try again in {seconds} seconds."),
    "image_missing": "404 QR code not found. Check the URL; the code may have been deleted.",
    # webhooks
    "webhook_off": "400 This webhook is turned off. Set active to true, then try again.",
    "webhook_without_url": "400 This webhook has no URL, so nothing is sent. Add a URL, then try again.",
    "webhooks_full": "400 You have 20 webhooks, which is the maximum. Delete one that is not used, "
    "or change an existing one.",
    "campaign_missing": "404 Campaign not found. It may be private, empty or deleted.",
    # overlays
    "overlay_colours_too_close": (400, "color",
        "The text and background colors are too similar. Choose colors with a contrast of at least "
        "3 to 1. For example, change color to {color}, or background to {background}."),
    "answer_unplaced": "400 This form is invalid or older than a day. Open the short link again.",
    "answers_full": "403 This form has reached its limit of answers.",
    "too_many_answers": "429 Too many answers from your IP address. Try again in {seconds} seconds.",
    # sign-in
    "link_spent": "410 This sign-in link has been used or is older than an hour. Ask for a new one.",
    "sign_in_failed": "401 The name or the password is wrong. Check both for typing errors.",
    "too_many_sign_ins": "429 Too many wrong passwords. Try again in {seconds} seconds.",
    "too_many_checks": "429 Too many passwords from your IP address. Try again in {seconds} seconds.",
    "account_checks": "429 Too many passwords for this account. Try again in {seconds} seconds, or "
    "ask an administrator for a sign-in link.",
    "too_many_for_account": "429 Too many wrong passwords for this e-mail address. Try again in "
    "{seconds} seconds, or ask an administrator for a sign-in link.",
    "password_busy": "503 Too many passwords are being checked or stored. Try again in {seconds} seconds.",
    "own_login_link": "403 You cannot create a sign-in link for yourself. Sign in with your "
    "password instead.",
    "password_set_meanwhile": "400 Your password has been set by another request. Sign in with it "
    "to change it.",
    "password_wrong": "400 Your current password is wrong.",
    "passwords_off": "403 This service has no passwords. Sign in as its sign-in page offers, or ask an "
    "administrator for a sign-in link.",
    "sign_in_expired": "400 This sign-in was begun in another browser or more than 10 minutes ago, or it has "
    "been used. Sign in again.",
    "sign_ins_limited": "429 Too many sign-ins from your IP address. Try again in {seconds} seconds.",
    "provider_down": "503 {name} does not respond. Try again in {seconds} seconds, or ask an administrator for "
    "a sign-in link.",
    "provider_wrong": "502 {name} sent what this service cannot accept, so you were not signed in. Try again; if "
    "it persists, ask the operator of this service to read its log.",
    "provider_refused": "403 {name} has not signed you in. Try again, or ask an administrator for a sign-in link.",
    "account_none": "403 {name} knows you, but you have no account here. Ask an administrator for one.",
    "account_exists": "403 An account with the e-mail address {email} exists. Sign in to it another way, and "
    "connect it to {name} on its account page.",
    "account_no_email": "403 {name} did not send your e-mail address, which a new account needs. Ask an "
    "administrator for an account.",
    "identity_taken": "400 Your account at {name} is connected to another account here, or this one to another "
    "account there. Disconnect that one first.",
    "identity_other": "403 You signed in at {name} with another account than the one that is connected here.",
    "identity_last": "400 This is the only way for you to sign in. {remedy} first.",
    "remote_user_missing": "403 The proxy of this service has not sent the name of a user. Sign in another way.",
    "password_short": (400, "password", "The new password must have at least 8 characters."),
    "password_common": (400, "password",
        "The new password is common or easy to guess. Choose another one."),
    "not_confirmed": "400 Confirm that it is you first.",
    "code_wrong": "401 This code is wrong or was used before. Try the next one.",
    "too_many_codes": "429 Too many one-time codes. Try again in {seconds} seconds, or use a passkey.",
    "codes_enrolled": "400 One-time codes are set up already, or this page is old. Begin again.",
    "passkey_refused": "401 The passkey was not accepted. Try again, and answer within five minutes.",
    "passkey_known": "400 This passkey has been added before.",
    "factors_full": "400 You have 20 passkeys and one-time codes, which is the maximum. Remove a passkey first.",
    "foreign_origin": "403 This form was sent from another website. Open the page on this service "
    "and try again.",
    "link_password_wrong": "401 This password is wrong. Try again.",
    # the service
    "unavailable": "503 The service cannot reach its database. Try again in {seconds} seconds.",
    "busy": "503 The database is too busy or short of resources. Try again in {seconds} seconds.",
    "too_slow": "503 These statistics take too long to compute. Narrow the range, or use fewer "
    "dimensions, filters or metrics. Otherwise try again in {seconds} seconds.",
    "stats_busy": "503 Too many requests that take long are in progress. Try again in {seconds} "
    "seconds, or narrow the range.",
    "schema_too_old": "503 The database schema is outdated. Run 'flask --app app database "
    "upgrade'.",
    "other_secret": "503 The API keys were encrypted with another secret. Add it to "
    "LINKMGR_SECRET_KEY_FALLBACKS.",
    "bug": "500 Something went wrong on our side. Please try again; if it persists, report request "
    "id {id}.",
}
# fmt: on
# Sentences of codes for some of their details
DETAILED = {
    ("alias_taken", "binned"): "A link in your bin has this alias. Restore it or delete it "
    "forever, or choose another alias.",
    ("alias_taken", "code"): "A QR code in your bin has this code. Restore it or delete it forever.",
}
CATALOGUE = {
    code: (int(line[:3]), line[4:]) if isinstance(line, str) else (line[0], line[2])
    for code, line in _LINES.items()
}
FIELDS = {code: tuple(line[1].split()) for code, line in _LINES.items() if not isinstance(line, str)}

# HTTP errors with a code of their own; all others are bad_request.
HTTP_CODES = {
    408: "request_timeout",
    413: "too_large",
    414: "address_too_long",
    417: "expectation_failed",
    431: "headers_too_large",
    500: "bug",
    501: "not_implemented",
    503: "busy",
}
