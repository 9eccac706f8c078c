package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"giantstream/config"
)

func TestSecretsDoNotPrint(t *testing.T) {
	c := config.Default()
	c.S3.SecretKey, c.Kafka.SASL.Password = "topsecret", "topsecret"

	printed := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		printed[verb] = fmt.Sprintf(verb, c) + fmt.Sprintf(verb, c.S3.SecretKey) + fmt.Sprintf(verb, &c)
	}
	j, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	y, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "config", c, "secret", c.S3.SecretKey)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "config", c, "secret", c.S3.SecretKey)
	printed["json"], printed["yaml"], printed["slog"] = string(j), string(y), log.String()

	for how, text := range printed {
		if strings.Contains(text, "topsecret") || strings.Contains(text, fmt.Sprintf("%x", "topsecret")) {
			t.Errorf("%s gives the secret away: %s", how, text)
		}
	}
	if !strings.Contains(printed["yaml"], "secret_key: '***'") && !strings.Contains(printed["yaml"], `secret_key: "***"`) {
		t.Errorf("yaml does not show that a key is set:\n%s", printed["yaml"])
	}
	if got := config.Secret("").String(); got != "" {
		t.Errorf("a secret that is not set prints %q", got)
	}
}

func TestParseSize(t *testing.T) {
	for _, tt := range []struct {
		text string
		want config.Size
		ok   bool
	}{
		{"0", 0, true},
		{"4096", 4096, true},
		{"4096B", 4096, true},
		{"512KiB", 512 * config.KiB, true},
		{"64MiB", 64 * config.MiB, true},
		{"64 MiB", 64 * config.MiB, true},
		{"1.5GiB", 1536 * config.MiB, true},
		{"2TiB", 2 * config.TiB, true},
		{"", 0, false},
		{"MiB", 0, false},
		{"64MB", 0, false}, // decimal or binary? say which
		{"0.3B", 0, false},
		{"-1", 0, false},
		{"NaN", 0, false},
		{"Inf", 0, false},
		{"9000000TiB", 0, false},
	} {
		got, err := config.ParseSize(tt.text)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("ParseSize(%q) = %d, %v; want %d, ok %v", tt.text, got, err, tt.want, tt.ok)
		}
	}
}

func TestSizePrintsAsWritten(t *testing.T) {
	for want, size := range map[string]config.Size{
		"0": 0, "1000": 1000, "1KiB": config.KiB, "1536MiB": 1536 * config.MiB, "2GiB": 2 * config.GiB,
	} {
		if got := size.String(); got != want {
			t.Errorf("%d prints as %q, want %q", int64(size), got, want)
		}
	}
}
