package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Secrets of the configuration show nowhere: not in what a command prints, not in errors, not in
// logs at any level.
func TestSecretsDoNotShow(t *testing.T) {
	t.Parallel()
	const accessKey, secretKey, password = "ACCESSKEYINTHECLEAR", "SECRETKEYINTHECLEAR", "PASSWORDINTHECLEAR"
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>`)
	}))
	defer refusing.Close()
	broker := refusingBroker(t)
	s3 := fmt.Sprintf("s3: {endpoint: %q, access_key: %s, secret_key: %s}\n", refusing.URL, accessKey, secretKey)
	kafka := func(mechanism string) string {
		return fmt.Sprintf("kafka: {brokers: [%q], sasl: {mechanism: %s, username: me, password: %s}}\n", broker,
			mechanism, password)
	}
	local := func() string { return fmt.Sprintf("store: %q\nhttp: {listen: \"\"}\n", "file://"+t.TempDir()) }

	for _, c := range []struct {
		name, config, args string
		code               int
	}{
		{"valid", "store: s3://bucket/prefix\n" + s3 + kafka("PLAIN"), "config check FILE", 0},
		{"fault beside the secret", s3 + kafka("PLIAN"), "config check FILE", 2},
		{"fault in the section", "s3:\n  access_key: " + accessKey + "\n  secret_key: " + secretKey +
			"\n  regoin: us-east-1\n", "config check FILE", 2},
		{"secret of the wrong type", "kafka: {sasl: {password: [" + password + "]}}", "config check FILE", 2},
		{"secret in a misspelled field", "s3: {secretkey: " + secretKey + ", access_key: " + accessKey + "}",
			"config check FILE", 2},
		{"no YAML", "s3: {access_key: " + accessKey + ", secret_key: \"" + secretKey, "config check FILE", 2},
		{"store refuses, status", "store: s3://bucket/prefix\n" + s3, "status -c FILE", 1},
		{"store refuses, run", "store: s3://bucket/prefix\nhttp: {listen: \"\"}\n" + s3, "run -c FILE --until-idle", 1},
		{"broker refuses, run", local() + kafka("PLAIN"), "run -c FILE --until-idle", 1},
		{"broker refuses, backfill", local() + kafka("SCRAM-SHA-256"), "backfill -c FILE --nodes NODES", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := writeFile(t, filepath.Join(t.TempDir(), "pipeline.yaml"), c.config)
			nodes := writeFile(t, filepath.Join(t.TempDir(), "nodes.jsonl"), `{"id":"a","text":"b"}`+"\n")
			args := strings.Fields(strings.NewReplacer("FILE", file, "NODES", nodes).Replace(c.args))
			r := run(t, append(args, "--log-level", "debug")...)
			if r.code != c.code {
				t.Errorf("exit code %d, want %d", r.code, c.code)
			}
			if r.stdout+r.stderr == "" {
				t.Error("prints nothing")
			}
			for _, secret := range []string{accessKey, secretKey, password} {
				if strings.Contains(r.stdout+r.stderr, secret) {
					t.Errorf("shows %s:\n%s%s", secret, r.stdout, r.stderr)
				}
			}
		})
	}
}

// refusingBroker returns the address of a broker that has another password for user me.
func refusingBroker(t *testing.T) string {
	t.Helper()
	c, err := kfake.NewCluster(kfake.EnableSASL(), kfake.Superuser("PLAIN", "me", "another"),
		kfake.Superuser("SCRAM-SHA-256", "me", "another"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()[0]
}
