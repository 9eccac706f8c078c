package telemetry

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// The errors of this file name variables without their values: a header is a credential, and a value may stand in
// the wrong variable.

// asked reports whether traces are to be sent.
func asked(ratio float64) (bool, error) {
	if disabled, _ := strconv.ParseBool(os.Getenv("OTEL_SDK_DISABLED")); disabled {
		return false, nil
	}
	to := os.Getenv("OTEL_TRACES_EXPORTER")
	switch to {
	case "none":
		return false, nil
	case "", "otlp":
	default:
		return false, errors.New("OTEL_TRACES_EXPORTER is neither otlp nor none: giantstream sends otlp, or none")
	}
	if ratio == 0 && to == "" && os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" &&
		os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return false, nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch os.Getenv(name) {
		case "":
		case "http/protobuf":
			return true, nil
		default:
			return false, fmt.Errorf("%s is not http/protobuf: giantstream sends that alone, for which collectors "+
				"listen on port 4318", name)
		}
	}
	return true, nil
}

// sampling returns what OTEL_TRACES_SAMPLER says, or else the ratio of the configuration. heedless: whatever the
// producer of a record has decided.
func sampling(configured float64) (ratio float64, heedless bool, err error) {
	name := os.Getenv("OTEL_TRACES_SAMPLER")
	kind, parents := strings.CutPrefix(name, "parentbased_")
	switch kind {
	case "":
		return configured, false, nil
	case "always_on":
		return 1, !parents, nil
	case "always_off":
		return 0, !parents, nil
	case "traceidratio":
		ratio = 1
		if arg := os.Getenv("OTEL_TRACES_SAMPLER_ARG"); arg != "" {
			ratio, err = strconv.ParseFloat(arg, 64)
			if err != nil || !(ratio >= 0 && ratio <= 1) {
				return 0, false, errors.New("OTEL_TRACES_SAMPLER_ARG must be a share between 0 and 1")
			}
		}
		return ratio, !parents, nil
	}
	return 0, false, errors.New("OTEL_TRACES_SAMPLER is none that giantstream knows: always_on, always_off, " +
		"traceidratio, and these after parentbased_")
}

// checkEnvironment refuses what OpenTelemetry's exporter would pass over, with a line on standard error that has the
// value in it.
func checkEnvironment() error {
	for _, kind := range []struct {
		name, want string
		valid      func(string) bool
	}{
		{"ENDPOINT", "http://host:port or https://host:port", isURL},
		{"HEADERS", "key=value, with commas between them and %-escapes in the values", areHeaders},
		{"TIMEOUT", "a whole number of milliseconds", isNumber},
	} {
		for _, signal := range []string{"", "TRACES_"} {
			name := "OTEL_EXPORTER_OTLP_" + signal + kind.name
			if value := strings.TrimSpace(os.Getenv(name)); value != "" && !kind.valid(value) {
				return fmt.Errorf("traces: %s must be %s", name, kind.want)
			}
		}
	}
	return nil
}

func isURL(value string) bool {
	_, err := url.Parse(value)
	return err == nil
}

func isNumber(value string) bool {
	_, err := strconv.Atoi(value)
	return err == nil
}

func areHeaders(list string) bool {
	for header := range strings.SplitSeq(list, ",") {
		name, value, found := strings.Cut(header, "=")
		_, err := url.PathUnescape(value)
		if !found || err != nil || !isToken(strings.TrimSpace(name)) {
			return false
		}
	}
	return true
}

// isToken reports whether a name can be that of an HTTP header.
func isToken(name string) bool {
	const marks = "!#$%&'*+-.^_`|~"
	return name != "" && strings.IndexFunc(name, func(c rune) bool {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		return !letter && !(c >= '0' && c <= '9') && !strings.ContainsRune(marks, c)
	}) < 0
}
