// Use the client that openapi-generator makes for Go.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	api "example.com/linkmgr/client"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	base := os.Args[1]
	configuration := api.NewConfiguration()
	configuration.Servers[0].URL = base
	ctx := context.WithValue(context.Background(), api.ContextAccessToken, os.Args[2])
	client := api.NewAPIClient(configuration)

	link := api.NewLinkCreate("https://example.com/1")
	link.SetCustom("first")
	link.SetCampaign(0)
	link.SetChannel([]int64{})
	created, _, err := client.LinksAPI.LinksCreate(ctx).LinkCreate(*link).Execute()
	check(err)

	many := []api.LinkCreate{*api.NewLinkCreate("https://example.com/2"), *api.NewLinkCreate("https://example.com/3")}
	bulk, _, err := client.BulkAPI.BulkAddLinks(ctx).LinksCreate(*api.NewLinksCreate(many)).Execute()
	check(err)

	listed := []string{}
	for after := ""; ; {
		request := client.LinksAPI.LinksList(ctx).Limit(2)
		if after != "" {
			request = request.After(after)
		}
		page, _, err := request.Execute()
		check(err)
		for _, link := range page.Data.Urls {
			listed = append(listed, link.Longurl)
		}
		if after = page.Data.GetNext(); after == "" {
			break
		}
	}

	found, _, err := client.LinksAPI.LinksList(ctx).Short(base + "/seeded").Execute()
	check(err)
	statistics, _, err := client.StatisticsAPI.StatsQuery(ctx).By([]api.StatsBy{"time:day", "country"}).
		Ids([]int64{found.GetId()}).Period("7d").Execute()
	check(err)

	hook := api.NewWebhookCreate("Hook", []api.WebhookEvents{"link.*"})
	hook.SetUrl("https://example.com/hook")
	webhook, _, err := client.WebhooksAndEventsAPI.WebhooksCreate(ctx).WebhookCreate(*hook).Execute()
	check(err)

	image, _, err := client.QRCodesAPI.QrCreate(ctx).QrCodeCreate(*api.NewQrCodeCreate("text", "Hello")).Execute()
	check(err)
	person := api.NewVcardData()
	person.SetFname("Dana")
	card, _, err := client.QRCodesAPI.QrCreate(ctx).QrCodeCreate(*api.NewQrCodeCreate("vcard", person)).Execute()
	check(err)
	response, err := http.Get(image.Link)
	check(err)
	png, err := io.ReadAll(response.Body)
	check(err)

	csv, _, err := client.ExportsAPI.ExportLinksCsv(ctx).Execute()
	check(err)

	_, _, err = client.LinksAPI.LinksCreate(ctx).LinkCreate(*link).Execute()
	refused := err.(*api.GenericOpenAPIError).Model().(api.Error)

	read, _, err := client.LinksAPI.LinksGet(ctx, created.Id).Execute()
	check(err)
	_, _, err = client.LinksAPI.LinksDelete(ctx, created.Id).Execute()
	check(err)
	_, _, err = client.LinksAPI.LinksGet(ctx, created.Id).Execute()
	missing := err.(*api.GenericOpenAPIError).Model().(api.Error)

	file, err := os.Open(os.Args[3])
	check(err)
	upload, _, err := client.ImportsAPI.ImportsCreate(ctx).File(file).Execute()
	check(err)
	var done api.Import
	for done.GetFinished() == "" {
		time.Sleep(100 * time.Millisecond)
		state, _, err := client.ImportsAPI.ImportsGet(ctx, upload.GetId()).Execute()
		check(err)
		done = state.Data
	}
	rows, _, err := client.ImportsAPI.ImportsListErrors(ctx, upload.GetId()).Execute()
	check(err)
	failed := []interface{}{}
	for _, row := range rows.Data {
		failed = append(failed, []interface{}{row.Number, row.Raw["url"]})
	}
	rejected, _, err := client.ImportsAPI.ImportsListErrorsCsv(ctx, upload.GetId()).Execute()
	check(err)

	conditions := api.Conditions{Country: []string{"Germany"}}
	tour := api.NewLinkCreate("https://example.com/tour")
	tour.SetRules([]api.Rule{*api.NewRule(conditions, "https://example.com/de")})
	tour.SetVariants([]api.Variant{*api.NewVariant("A", "https://example.com/A"), *api.NewVariant("B", "https://example.com/B")})
	toured, _, err := client.LinksAPI.LinksPut(ctx, "order-17").LinkCreate(*tour).Execute()
	check(err)
	visitor := api.NewDescribedVisitor()
	visitor.SetCountry("Germany")
	tried, _, err := client.LinksAPI.LinksTryVisitor(ctx, toured.Id).DescribedVisitor(*visitor).Execute()
	check(err)
	report := api.NewReport()
	report.SetLink(toured.Id)
	report.SetIp("192.0.2.7")
	report.SetAgent("Firefox")
	reported, _, err := client.ConversionsAPI.ConversionsCreate(ctx).Report(*report).Execute()
	check(err)
	_, _, err = client.LinksAPI.LinksDelete(ctx, toured.Id).Bin("1").Execute()
	check(err)
	bin, _, err := client.LinksAPI.LinksList(ctx).Bin("1").Execute()
	check(err)
	restored, _, err := client.LinksAPI.LinksRestore(ctx, toured.Id).Execute()
	check(err)
	again, _, err := client.LinksAPI.LinksList(ctx).Externalid("order-17").Execute()
	check(err)

	output, err := json.Marshal(map[string]interface{}{
		"created":  created.Shorturl,
		"bulk":     bulk.Created,
		"listed":   listed,
		"found":    found.Details.Alias,
		"clicks":   statistics.Data.Totals.GetClicks(),
		"webhook":  webhook.Secret[:6],
		"codes":    []interface{}{image.Link == card.Link, string(png[1:4])},
		"csv":      strings.Split(csv, "\r\n")[0],
		"error":    refused.Code,
		"read":     read.Details.Alias,
		"deleted":  missing.Code,
		"imported": []int64{done.Made, done.Failed},
		"failed":   failed,
		"rejected": strings.Split(rejected, "\r\n")[0],
		"toured": []interface{}{
			tried.Data.Url.Get(), reported.Result, bin.Data.Urls[0].Id == toured.Id, len(restored.Record.Variants),
			again.Data.Urls[0].Id == toured.Id,
		},
	})
	check(err)
	fmt.Println(string(output))
}
