// Use the client that openapi-generator makes for Java.
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.concurrent.Callable;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.*;
import org.openapitools.client.model.*;

class OpenapiGenerator {
  static final ObjectMapper JSON = new ObjectMapper();

  static String errorOf(Callable<?> call) throws Exception {
    try {
      call.call();
    } catch (ApiException error) {
      return JSON.readTree(error.getResponseBody()).get("code").asText();
    }
    throw new AssertionError("no error");
  }

  public static void main(String[] arguments) throws Exception {
    String base = arguments[0];
    ApiClient client = new ApiClient().setBasePath(base);
    client.setBearerToken(arguments[1]);
    LinksApi links = new LinksApi(client);

    LinkCreate first = new LinkCreate().url("https://example.com/1").custom("first").campaign(0L).channel(List.of());
    LinkCreated created = links.linksCreate(first, null);
    LinksCreate added = new LinksCreate();
    for (int number : List.of(2, 3)) {
      added.addUrlsItem(new LinkCreate().url("https://example.com/" + number));
    }
    BulkCreated bulk = new BulkApi(client).bulkAddLinks(added, null);

    List<String> listed = new ArrayList<>();
    String after = null;
    do {
      LinkPage page = links.linksList(
          null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, 2, null, after, null,
          null, null, null).getData();
      page.getUrls().forEach(link -> listed.add(link.getLongurl()));
      after = page.getNext();
    } while (after != null);

    LinkList found = links.linksList(
        null, null, null, null, null, null, null, null, null, null, null, null, null, base + "/seeded", null, null,
        null, null, null, null, null, null);
    List<StatsBy> by = List.of(StatsBy.STATS_BY_TIME_DAY, StatsBy.STATS_BY_COUNTRY);
    StatsPeriod week = StatsPeriod.STATS_PERIOD_7D;
    List<Long> ids = List.of(found.getId());
    StatsReport statistics = new StatisticsApi(client).statsQuery(
        null, by, ids, null, null, null, null, null, week, null, null, null, null, null, null, null, null, null, null,
        null, null, null, null, null, null, null, null, null, null, null);
    WebhookCreate hook = new WebhookCreate().name("Hook").url("https://example.com/hook");
    hook.addEventsItem(WebhookEvents.WEBHOOK_EVENTS_LINK_ALL);
    WebhookCreated webhook = new WebhooksAndEventsApi(client).webhooksCreate(hook, null);
    QrCodesApi codes = new QrCodesApi(client);
    QrCodeCreate text = new QrCodeCreate().type(QrCodeType.QR_CODE_TYPE_TEXT).data("Hello");
    QrCodeCreate card = new QrCodeCreate().type(QrCodeType.QR_CODE_TYPE_VCARD).data(new VcardData().fname("Dana"));
    URI image = URI.create(codes.qrCreate(text, null).getLink());
    URI other = URI.create(codes.qrCreate(card, null).getLink());
    HttpRequest request = HttpRequest.newBuilder(image).build();
    byte[] png = HttpClient.newHttpClient().send(request, BodyHandlers.ofByteArray()).body();
    String csv = new ExportsApi(client).exportLinksCsv(null);
    String refused = errorOf(() -> links.linksCreate(first, null));

    LinkResponse read = links.linksGet(created.getId(), null, null);
    links.linksDelete(created.getId(), null, null, null);
    String missing = errorOf(() -> links.linksGet(created.getId(), null, null));

    ImportsApi imports = new ImportsApi(client);
    Long upload = imports.importsCreate(new File(arguments[2]), null, null, null, null, null).getId();
    ModelImport done = imports.importsGet(upload, null).getData();
    while (done.getFinished() == null) {
      Thread.sleep(100);
      done = imports.importsGet(upload, null).getData();
    }
    List<Object> failed = new ArrayList<>();
    for (ImportError row : imports.importsListErrors(upload).getData()) {
      failed.add(List.of(row.getNumber(), row.getRaw().get("url")));
    }
    String rejected = imports.importsListErrorsCsv(upload);

    Rule rule = new Rule().when(new Conditions().country(List.of("Germany"))).url("https://example.com/de");
    LinkCreate tour = new LinkCreate().url("https://example.com/tour").rules(List.of(rule));
    for (String name : List.of("A", "B")) {
      tour.addVariantsItem(new Variant().name(name).url("https://example.com/" + name));
    }
    LinkCreated toured = links.linksPut("order-17", tour, null, null);
    LinkTriedData tried = links.linksTryVisitor(
        toured.getId(), null, new DescribedVisitor().country("Germany")).getData();
    ConversionReported reported = new ConversionsApi(client).conversionsCreate(
        null, new Report().link(toured.getId()).ip("192.0.2.7").agent("Firefox"));
    links.linksDelete(toured.getId(), Flag.FLAG_1, null, null);
    LinkPage bin = links.linksList(
        null, null, null, null, null, null, null, null, null, null, Flag.FLAG_1, null, null, null, null, null, null,
        null, null, null, null, null).getData();
    Link restored = links.linksRestore(toured.getId(), null).getRecord();
    LinkPage again = links.linksList(
        null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
        "order-17", null, null, null).getData();

    LinkedHashMap<String, Object> seen = new LinkedHashMap<>();
    seen.put("created", created.getShorturl());
    seen.put("bulk", bulk.getCreated());
    seen.put("listed", listed);
    seen.put("found", found.getDetails().getAlias());
    seen.put("clicks", statistics.getData().getTotals().getClicks());
    seen.put("webhook", webhook.getSecret().substring(0, 6));
    seen.put("codes", List.of(image.equals(other), new String(png, 1, 3, "US-ASCII")));
    seen.put("csv", csv.lines().findFirst().get());
    seen.put("error", refused);
    seen.put("read", read.getDetails().getAlias());
    seen.put("deleted", missing);
    seen.put("imported", List.of(done.getMade(), done.getFailed()));
    seen.put("failed", failed);
    seen.put("rejected", rejected.lines().findFirst().get());
    seen.put("toured", List.of(
        tried.getUrl(), reported.getResult(), bin.getUrls().get(0).getId().equals(toured.getId()),
        restored.getVariants().size(), again.getUrls().get(0).getId().equals(toured.getId())));
    System.out.println(JSON.writeValueAsString(seen));
  }
}
