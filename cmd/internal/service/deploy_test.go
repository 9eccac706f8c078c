package service

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const (
	alertRules = "../../../docs/deploy/prometheus/giantstream.rules.yaml"
	alertTests = "../../../docs/deploy/prometheus/giantstream.rules.test.yaml"
	dashboard  = "../../../docs/deploy/grafana/giantstream.json"
)

// expressions returns what is at key "expr" anywhere in a document.
func expressions(doc any) (all []string) {
	switch v := doc.(type) {
	case []any:
		for _, e := range v {
			all = append(all, expressions(e)...)
		}
	case map[string]any:
		for k, e := range v {
			if s, ok := e.(string); ok && k == "expr" {
				all = append(all, s)
			}
			all = append(all, expressions(e)...)
		}
	}
	return all
}

func readExpressions(t *testing.T, path string, decode func([]byte, any) error) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := decode(data, &doc); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	all := expressions(doc)
	if len(all) < 10 {
		t.Fatalf("%s has %d expressions: the test has not found them", path, len(all))
	}
	return all
}

// Alerts and the dashboard ask for metrics that the service has.
func TestAlertsAndDashboardNameMetricsThatExist(t *testing.T) {
	var sources []string
	for _, pattern := range []string{"*.go", "*/*.go", "*/*/*.go", "../endpoint/*.go", "../sinks/*.go"} {
		some, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, some...)
	}
	metric := regexp.MustCompile(`"(giantstream_[a-z_]+)"`)
	exist := map[string]bool{}
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		code, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range metric.FindAllStringSubmatch(string(code), -1) {
			exist[m[1]] = true
		}
	}
	// A recording rule's name has colons, which no metric's has.
	used := regexp.MustCompile(`(^|[^:a-z_])(giantstream_[a-z_]+)($|[^:a-z_])`)
	histogram := regexp.MustCompile(`_(bucket|sum|count)$`)
	asked := map[string]bool{}
	for path, decode := range map[string]func([]byte, any) error{alertRules: yaml.Unmarshal, dashboard: json.Unmarshal} {
		for _, expr := range readExpressions(t, path, decode) {
			for _, m := range used.FindAllStringSubmatch(expr, -1) {
				asked[m[2]] = true
				if !exist[m[2]] && !exist[histogram.ReplaceAllString(m[2], "")] {
					t.Errorf("%s: no metric is called %s: %s", path, m[2], expr)
				}
			}
		}
	}
	if len(asked) < 20 {
		t.Errorf("%d metrics are asked for: the test has not found them", len(asked))
	}
}

// Prometheus' own tool runs the rules' tests, and parses the expressions of the dashboard.
func TestPrometheusAcceptsAlertsAndDashboard(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool (Debian: prometheus) is not here: nothing was tested with it")
	}
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var rules []rule
	for _, expr := range readExpressions(t, dashboard, json.Unmarshal) {
		rules = append(rules, rule{"panel:expression", strings.ReplaceAll(expr, "$job", ".*")})
	}
	data, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}})
	panels := filepath.Join(t.TempDir(), "panels.yaml")
	if err == nil {
		err = os.WriteFile(panels, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "rules", "--lint=none", alertRules, panels},
		{"test", "rules", alertTests},
	} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
}

// Every alert fires in a test of the rules.
func TestEveryAlertIsTested(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert string `yaml:"alert"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	var suite struct {
		Tests []struct {
			Alerts []struct {
				Name string `yaml:"alertname"`
				Want []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		} `yaml:"tests"`
	}
	for path, doc := range map[string]any{alertRules: &rules, alertTests: &suite} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(data, doc); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	fires := map[string]bool{}
	for _, test := range suite.Tests {
		for _, alert := range test.Alerts {
			fires[alert.Name] = fires[alert.Name] || len(alert.Want) > 0
		}
	}
	alerts := 0
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				continue
			}
			if alerts++; !fires[rule.Alert] {
				t.Errorf("no test of %s lets %s fire", alertTests, rule.Alert)
			}
		}
	}
	if alerts < 20 {
		t.Errorf("%d alerts: the test has not found them", alerts)
	}
}
