<?php
// Create a short link, read the list of all links, and verify webhooks.
// Needs PHP 8 with curl.

// Send a request, again if the limit is reached or the service is busy.
function call(string $method, string $path, ?array $body = null): array
{
    $seconds = 0;
    $request = curl_init(getenv("BASE") . $path);
    curl_setopt_array($request, [
        CURLOPT_CUSTOMREQUEST => $method,
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_TIMEOUT => 30,
        CURLOPT_HTTPHEADER => [
            "Authorization: Bearer " . getenv("KEY"),
            "Content-Type: application/json",
            "Idempotency-Key: " . bin2hex(random_bytes(16)), // a write that is repeated is carried out once
        ],
        CURLOPT_HEADERFUNCTION => function ($request, string $header) use (&$seconds): int {
            if (stripos($header, "Retry-After:") === 0) {
                $seconds = (int) substr($header, 12);
            }
            return strlen($header);
        },
    ]);
    if ($body !== null) {
        curl_setopt($request, CURLOPT_POSTFIELDS, json_encode($body));
    }
    while (true) {
        $text = curl_exec($request);
        $status = curl_getinfo($request, CURLINFO_HTTP_CODE);
        if ($status === 200) {
            return json_decode($text, true);
        }
        if ($status !== 429 && $status !== 503) {
            throw new RuntimeException(json_decode($text, true)["message"] ?? curl_error($request));
        }
        sleep($seconds);
    }
}

function links(): Generator
{
    $after = "";
    while ($after !== null) {
        $page = call("GET", "/api/urls?limit=100&after=$after")["data"];
        yield from $page["urls"];
        $after = $page["next"] ?? null;
    }
}

// Return true if a webhook with this secret sent the body within the last five minutes.
// $headers is array_change_key_case(getallheaders()), and $body is file_get_contents("php://input").
function is_genuine(string $secret, array $headers, string $body): bool
{
    $sent = $headers["webhook-timestamp"];
    $key = base64_decode(str_replace("whsec_", "", $secret));
    $signature = "v1," . base64_encode(hash_hmac("sha256", "{$headers["webhook-id"]}.$sent.$body", $key, true));
    foreach (explode(" ", $headers["webhook-signature"]) as $other) {
        if (hash_equals($signature, $other)) {
            return abs(time() - (int) $sent) < 300;
        }
    }
    return false;
}

if (realpath($_SERVER["SCRIPT_FILENAME"]) === __FILE__) {
    echo call("POST", "/api/url/add", ["url" => "https://example.com/a/long/path"])["shorturl"], "\n";
    $number = 0;
    foreach (links() as $_) {
        $number++;
    }
    echo $number, " links\n";
}
