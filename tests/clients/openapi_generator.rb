# Use the client that openapi-generator makes for Ruby.
require "json"
require "net/http"
require "openapi_client"
include OpenapiClient

base, key, file = ARGV
OpenapiClient.configure do |configuration|
  configuration.host = base.delete_prefix("http://")
  configuration.access_token = key
end
links = LinksApi.new

def error_of
  yield
rescue ApiError => error
  JSON.parse(error.response_body)["code"]
end

first = LinkCreate.new(url: "https://example.com/1", custom: "first", campaign: 0, channel: [])
created = links.links_create(first)
added = [2, 3].map { |number| LinkCreate.new(url: "https://example.com/#{number}") }
bulk = BulkApi.new.bulk_add_links(LinksCreate.new(urls: added))

listed, after = [], nil
loop do
  page = links.links_list(limit: 2, after: after).data
  listed += page.urls.map(&:longurl)
  break unless (after = page._next)
end

found = links.links_list(short: "#{base}/seeded")
statistics = StatisticsApi.new.stats_query(by: ["time:day", "country"], ids: [found.id], period: "7d")
webhook = WebhooksAndEventsApi.new.webhooks_create(
  WebhookCreate.new(name: "Hook", url: "https://example.com/hook", events: ["link.*"])
)
codes = QRCodesApi.new
image = codes.qr_create(QrCodeCreate.new(type: "text", data: "Hello"))
card = codes.qr_create(QrCodeCreate.new(type: "vcard", data: VcardData.new(fname: "Dana")))
png = Net::HTTP.get(URI(image.link))
csv = ExportsApi.new.export_links_csv
refused = error_of { links.links_create(first) }

read = links.links_get(created.id)
links.links_delete(created.id)
missing = error_of { links.links_get(created.id) }

imports = ImportsApi.new
upload = imports.imports_create(File.new(file)).id
sleep 0.1 until (done = imports.imports_get(upload).data).finished
rows = imports.imports_list_errors(upload).data
rejected = imports.imports_list_errors_csv(upload)

rule = Rule.new(_when: Conditions.new(country: ["Germany"]), url: "https://example.com/de")
variants = %w[A B].map { |name| Variant.new(name: name, url: "https://example.com/#{name}") }
tour = LinkCreate.new(url: "https://example.com/tour", rules: [rule], variants: variants)
toured = links.links_put("order-17", tour)
tried = links.links_try_visitor(toured.id, described_visitor: DescribedVisitor.new(country: "Germany")).data
reported = ConversionsApi.new.conversions_create(report: Report.new(link: toured.id, ip: "192.0.2.7", agent: "Firefox"))
links.links_delete(toured.id, bin: "1")
bin = links.links_list(bin: "1").data.urls
restored = links.links_restore(toured.id).record
again = links.links_list(externalid: "order-17").data.urls

puts JSON.generate(
  created: created.shorturl,
  bulk: bulk.created,
  listed: listed,
  found: found.details._alias,
  clicks: statistics.data.totals.clicks,
  webhook: webhook.secret[0, 6],
  codes: [image.link == card.link, png[1, 3]],
  csv: csv.lines(chomp: true).first,
  error: refused,
  read: read.details._alias,
  deleted: missing,
  imported: [done.made, done.failed],
  failed: rows.map { |row| [row.number, row.raw["url"]] },
  rejected: rejected.lines(chomp: true).first,
  toured: [tried.url, reported.result, bin[0].id == toured.id, restored.variants.size, again[0].id == toured.id]
)
