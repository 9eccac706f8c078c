package telemetry_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel"

	"giantstream/cmd/internal/telemetry"
	"giantstream/internal/canary"
)

// Whatever an OTEL_ variable holds, neither our errors nor OpenTelemetry's own log repeat it.
func TestEnvironmentDoesNotShow(t *testing.T) {
	secret := canary.New(1)
	var said bytes.Buffer
	otel.SetLogger(funcr.New(func(prefix, args string) { fmt.Fprintln(&said, prefix, args) }, funcr.Options{}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { fmt.Fprintln(&said, err) }))
	const marks = "= ,%;:/@?#\"\\\x01é"
	r := rand.New(rand.NewPCG(1, 2))
	malformed := []string{"SECRET", "a b=SECRET", "=SECRET", "key=SECRET%", "a=b,SECRET", "a=%zz,key=SECRET",
		"http://u:SECRET@%zz",
		"http://u:SECRET@127.0.0.1:1/?key=SECRET", "://SECRET", "k=v;SECRET"}
	for range 200 {
		value := []rune("key=SECRET")
		for range 3 {
			at, mark := r.IntN(5), []rune(marks)[r.IntN(len([]rune(marks)))]
			value = append(value[:at:at], append([]rune{mark}, value[at:]...)...)
		}
		malformed = append(malformed, string(value))
	}
	for _, name := range []string{"EXPORTER_OTLP_ENDPOINT", "EXPORTER_OTLP_TRACES_ENDPOINT", "EXPORTER_OTLP_HEADERS",
		"EXPORTER_OTLP_TRACES_HEADERS", "EXPORTER_OTLP_TIMEOUT", "EXPORTER_OTLP_TRACES_TIMEOUT",
		"EXPORTER_OTLP_PROTOCOL",
		"EXPORTER_OTLP_COMPRESSION", "EXPORTER_OTLP_INSECURE", "RESOURCE_ATTRIBUTES", "TRACES_EXPORTER",
		"TRACES_SAMPLER",
		"TRACES_SAMPLER_ARG", "SDK_DISABLED", "BSP_SCHEDULE_DELAY", "BSP_MAX_QUEUE_SIZE"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_TRACES_SAMPLER", "traceidratio")
			for _, value := range malformed {
				value = strings.ReplaceAll(value, "SECRET", secret)
				t.Setenv("OTEL_"+name, strings.ReplaceAll(value, "\x00", ""))
				traces, err := telemetry.Start(t.Context(),
					telemetry.Options{Ratio: 1, Log: slog.New(slog.NewTextHandler(&said, nil))})
				fmt.Fprintln(&said, err, traces.Close())
				if how := canary.Find(said.String(), secret); how != "" {
					t.Fatalf("%q shows %s:\n%s", value, how, &said)
				}
				said.Reset()
			}
		})
	}
}
