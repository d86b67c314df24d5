<?php
// Use the client that openapi-generator makes for PHP.

use OpenAPI\Client\Api;
use OpenAPI\Client\ApiException;
use OpenAPI\Client\Configuration;
use OpenAPI\Client\Model;

require 'GuzzleHttp/autoload.php';
spl_autoload_register(function (string $class): void {
    $file = getcwd() . '/lib/' . str_replace('\\', '/', substr($class, strlen('OpenAPI\\Client\\'))) . '.php';
    if (str_starts_with($class, 'OpenAPI\\Client\\') && file_exists($file)) {
        require $file;
    }
});
set_error_handler(fn (int $level, string $message) => throw new ErrorException($message, 0, $level));

[, $base, $key, $file] = $argv;
$http = new GuzzleHttp\Client();
$configuration = Configuration::getDefaultConfiguration()->setHost($base)->setAccessToken($key);
$links = new Api\LinksApi($http, $configuration);

$created = $links->linksCreate(new Model\LinkCreate(['url' => 'https://example.com/1', 'custom' => 'first', 'metatitle' => 'Sale', 'expiry' => '2030-12-31 23:59:59', 'campaign' => 0, 'channel' => []]));
$added = array_map(fn (int $number) => new Model\LinkCreate(['url' => "https://example.com/$number"]), [2, 3]);
$bulk = (new Api\BulkApi($http, $configuration))->bulkAddLinks(new Model\LinksCreate(['urls' => $added]));

[$listed, $after] = [[], null];
do {
    $page = $links->linksList(limit: 2, after: $after)->getData();
    foreach ($page->getUrls() as $link) {
        $listed[] = $link->getLongurl();
    }
    $after = $page->getNext();
} while ($after);

$found = $links->linksList(short: "$base/seeded");
$statistics = (new Api\StatisticsApi($http, $configuration))->statsQuery(by: ['time:day', 'country'], ids: [$found->getId()], period: '7d');
$webhook = (new Api\WebhooksAndEventsApi($http, $configuration))->webhooksCreate(
    new Model\WebhookCreate(['name' => 'Hook', 'url' => 'https://example.com/hook', 'events' => ['link.*']])
);
$codes = new Api\QRCodesApi($http, $configuration);
$image = $codes->qrCreate(new Model\QrCodeCreate(['type' => 'text', 'data' => 'Hello']));
$card = $codes->qrCreate(new Model\QrCodeCreate(['type' => 'vcard', 'data' => new Model\VcardData(['fname' => 'Dana'])]));
$png = (string) $http->get($image->getLink())->getBody();
$csv = (new Api\ExportsApi($http, $configuration))->exportLinksCsv();
try {
    $links->linksCreate(new Model\LinkCreate(['url' => 'https://example.com/1', 'custom' => 'first']));
} catch (ApiException $error) {
    $refused = $error->getResponseObject();
}

$read = $links->linksGet($created->getId());
$links->linksDelete($created->getId());
try {
    $links->linksGet($created->getId());
} catch (ApiException $error) {
    $missing = $error->getResponseObject();
}

$imports = new Api\ImportsApi($http, $configuration);
$upload = $imports->importsCreate(new SplFileObject($file))->getId();
while (!($done = $imports->importsGet($upload)->getData())->getFinished()) {
    usleep(100000);
}
$rows = $imports->importsListErrors($upload)->getData();
$rejected = $imports->importsListErrorsCsv($upload);

$rule = new Model\Rule(['when' => new Model\Conditions(['country' => ['Germany']]), 'url' => 'https://example.com/de']);
$variants = array_map(fn (string $name) => new Model\Variant(['name' => $name, 'url' => "https://example.com/$name"]), ['A', 'B']);
$toured = $links->linksPut('order-17', new Model\LinkCreate(['url' => 'https://example.com/tour', 'rules' => [$rule], 'variants' => $variants]));
$tried = $links->linksTryVisitor($toured->getId(), described_visitor: new Model\DescribedVisitor(['country' => 'Germany']));
$reported = (new Api\ConversionsApi($http, $configuration))->conversionsCreate(
    report: new Model\Report(['link' => $toured->getId(), 'ip' => '192.0.2.7', 'agent' => 'Firefox'])
);
$links->linksDelete($toured->getId(), bin: '1');
$bin = $links->linksList(bin: '1')->getData()->getUrls();
$restored = $links->linksRestore($toured->getId())->getRecord();
$again = $links->linksList(externalid: 'order-17')->getData()->getUrls();

echo json_encode([
    'created' => $created->getShorturl(),
    'bulk' => $bulk->getCreated(),
    'listed' => $listed,
    'found' => $found->getDetails()->getAlias(),
    'clicks' => $statistics->getData()->getTotals()->getClicks(),
    'webhook' => substr($webhook->getSecret(), 0, 6),
    'codes' => [$image->getLink() === $card->getLink(), substr($png, 1, 3)],
    'csv' => strtok($csv, "\r"),
    'error' => $refused->getCode(),
    'read' => $read->getDetails()->getAlias(),
    'deleted' => $missing->getCode(),
    'imported' => [$done->getMade(), $done->getFailed()],
    'failed' => array_map(fn (Model\ImportError $row) => [$row->getNumber(), $row->getRaw()['url']], $rows),
    'rejected' => strtok($rejected, "\r"),
    'toured' => [
        $tried->getData()->getUrl(), $reported->getResult(), $bin[0]->getId() === $toured->getId(),
        count($restored->getVariants()), $again[0]->getId() === $toured->getId(),
    ],
]);
