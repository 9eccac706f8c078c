package config

import (
	"slices"
	"testing"
	"time"
)

// A file of YAML is read as the configuration that it was made of.
func TestYAMLIsReadBack(t *testing.T) {
	c := Default()
	c.Pipeline, c.Shards, c.Store = "shop", 3, "file:///srv/a b/out"
	c.Kafka.Brokers = []string{"a:9092", "b:9092"}
	c.Ingest.Nodes.ID, c.Ingest.Nodes.Text = "${sku}", List{`"Title", short`, "description: long", "été\t"}
	c.Ingest.Nodes.Deleted = "status in [draft, archived]"
	c.Ingest.Undirected, c.Window.Time, c.Featurize.MemoryLimit = false, 1500*time.Millisecond, 3*GiB
	c.HTTP.Token = "secret"
	file := c.YAML(map[string]string{"shards": "How many.\nTwo lines.", "train.encoder": "As it is."})
	got, err := Parse(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	c.HTTP.Token = ""
	if want := c.Fields(); !slices.Equal(got.Fields(), want) {
		t.Errorf("%v\nwant %v\n%s", got.Fields(), want, file)
	}
}
