package icebergsink

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/cli/sinkprocess"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/internal/canary"
	"giantstream/sink/dirstore"
	"giantstream/stream/commitlog"
)

// No command of giantstream-iceberg shows a secret, whether the file has a fault, the store or the catalog refuses, or
// no broker is there.
func TestNoCommandShowsSecrets(t *testing.T) {
	var catalog atomic.Bool // was asked with a credential
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
			catalog.Store(true)
		}
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"error": {"message": "not with %s", "code": 403}}`, r.Header.Get("Authorization"))
	}))
	defer refusing.Close()
	secrets := map[string]string{}
	secret := func(field string) string {
		secrets[field] = canary.New(len(secrets))
		return secrets[field]
	}
	s3 := fmt.Sprintf("s3: {endpoint: %q, path_style: true, access_key: %s, secret_key: %s}\n", refusing.URL,
		secret("s3.access_key"), secret("s3.secret_key"))
	kafka := fmt.Sprintf("kafka: {brokers: [\"127.0.0.1:1\"], sasl: {mechanism: PLAIN, username: me, password: %s}}\n",
		secret("kafka.sasl.password"))
	token := fmt.Sprintf("sinks: {iceberg: {uri: %q, token: %s}}\n", refusing.URL, secret("sinks.iceberg.token"))
	client := fmt.Sprintf("sinks: {iceberg: {uri: %q, client_id: me, client_password: %s}}\n", refusing.URL,
		secret("sinks.iceberg.client_password"))
	dir := filepath.Join(t.TempDir(), "store")
	store, err := dirstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	if _, err := commitlog.EnsureIdentity(t.Context(), store, wiring.IdentityOf(&cfg), false); err != nil {
		t.Fatal(err)
	}
	local := fmt.Sprintf("store: %q\nhttp: {listen: \"\"}\n", dir)
	for name, text := range map[string]string{
		"a token":              local + kafka + token,
		"a client":             local + kafka + client,
		"a store that refuses": "store: s3://bucket/prefix\nhttp: {listen: \"\"}\n" + s3 + kafka + token,
		"a fault":              local + "shards: many\n" + s3 + kafka + token,
		"an unknown field":     local + "sinks: {iceberg: {tokens: " + secrets["sinks.iceberg.token"] + "}}\n",
	} {
		for _, args := range [][]string{{"run"}, {"run", "--until-caught-up"}, {"refill"}, {"rows", "--until-caught-up"},
			{"left", "a"}} {
			t.Run(fmt.Sprint(name, args), func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "pipeline.yaml")
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				out, err := os.Create(filepath.Join(t.TempDir(), "output")) // several goroutines write
				if err != nil {
					t.Fatal(err)
				}
				defer out.Close()
				code := sinkprocess.Run(ctx, &command.App{Out: out, Err: out}, Kind,
					append(args, "-c", file, "--log-level", "debug"))
				said, err := os.ReadFile(out.Name())
				if err != nil || len(said) == 0 {
					t.Errorf("prints nothing: %v", err)
				}
				for field, value := range secrets {
					if how := canary.Find(string(said), value); how != "" {
						t.Errorf("exit code %d, and %s shows %s:\n%s", code, field, how, said)
					}
				}
			})
		}
	}
	if !catalog.Load() {
		t.Error("no command has asked the catalog")
	}
}
