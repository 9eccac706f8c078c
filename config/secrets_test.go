package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"giantstream/config"
	"giantstream/internal/canary"
)

// secretFields are the paths of the fields that are secret, found by their type.
var secretFields = pathsOf(func(_ string, secret bool) bool { return secret })

// addressFields are those that are dialled, which take no credentials.
var addressFields = pathsOf(func(path string, secret bool) bool { return !secret && addresses.MatchString(path) })

var addresses = regexp.MustCompile(`(^store|\.endpoint|\.brokers|\.url|\.uri|\.location|\.listen)$`)

func pathsOf(wanted func(path string, secret bool) bool) (paths []string) {
	c := config.Default()
	c.EachField(func(path string, v reflect.Value, _ config.Effect) {
		if wanted(path, v.Type() == reflect.TypeFor[config.Secret]()) {
			paths = append(paths, path)
		}
	})
	return paths
}

// styles are the ways to write KEY: VALUE, right and wrong ones. > begins each further line, and stands for the
// indentation of KEY.
var styles = []string{
	"KEY: VALUE", "KEY: 'VALUE'", `KEY: "VALUE"`, "KEY : VALUE", "'KEY': VALUE", `"KEY" : VALUE`, "KEY:VALUE",
	"KEY VALUE",
	"KEY:\n>  VALUE", "KEY: >-\n>  VALUE", "KEY: |\n>  VALUE", "KEY: |+\n>  VALUE\n>", "KEY: >2-\n>  VALUE\n>  VALUE",
	"KEY: |1\n> VALUE", "KEY: >-\n>VALUE", "KEY: |VALUE", "KEY: \"first\n>  VALUE\n>  last\"", "KEY: 'VALUE\n>",
	`KEY: "VALUE`,
	"KEY: VALUE\n>  VALUE", "? KEY\n>: VALUE", "? VALUE\n>: KEY", "KEY: &a VALUE", "KEY: &VALUE x", "KEY: *VALUE",
	"KEY: &VALUE VALUE\n>KEY: *VALUE", "KEY: !!str VALUE", "KEY: !VALUE x", "KEY: !<VALUE> x", "KEY: [VALUE]",
	"KEY: [a, VALUE",
	"KEY:\n>  - VALUE", "KEY:\n>- VALUE", "KEY: {VALUE: a}", "KEY: {a: VALUE}", "KEY: {VALUE}", "KEY: a, VALUE",
	"KEY: a,VALUE: b",
	"KEY: VALUE: b", "KEY: a: VALUE", "KEY: VALUE # VALUE", "KEY: # VALUE\n>  VALUE", "# KEY: VALUE\n>KEY: a b",
	"#KEY: VALUE",
	"KEYS: VALUE", "KYE: VALUE", "KEY_: VALUE", "my_KEY: VALUE", "KEY: VALUE\n>KEY: VALUE", "KEY: a ${VALUE",
	"KEY: a${VALUE}b",
	"KEY: '${VALUE:-VALUE}'", "KEY: ${FROM_ENVIRONMENT}", "KEY: ${FROM_ENVIRONMENT} ${NOT SET}",
	"KEY: ${UNSET:-VALUE}", "KEY: @VALUE",
	"KEY: `VALUE", "KEY: %VALUE", "KEY: 'a''VALUE'", `KEY: "\q VALUE"`, `KEY: "\u12VALUE"`, "KEY: -VALUE",
	"KEY: - VALUE",
	"KEY: ? VALUE", "KEY: 'a' VALUE", `KEY: "a" "VALUE"`, "<<: {KEY: VALUE}", "KEY: VALUE\n---\nKEY: VALUE",
	"KEY: VALUE\n...\nVALUE",
	"KEY=VALUE", "KEY: VALUE==", "KEY: {a: VALUE, b=c", "KEY: !!binary VALUE", "\tKEY: VALUE", "KEY:\tVALUE",
	"KEY: ]VALUE", "KEY: }VALUE", "KEY: VALUE}", "VALUE",
	"- VALUE", "KEY: \"a\\\n>  VALUE\"", "KEY: |VALUE\n>  VALUE", "KEY: >-VALUE\n>  x",
}

// faults are lines that are wrong, and one that is not.
var faultyLines = []string{"", "shards: many", "storage: x", "]", "}", "'", `"`, "store: [", "- x", "\t", "@",
	"%YAML 9", "...",
	"---", "shards: *a", "shards: 1\nshards: 2", "  shards: 1", "? a", "log: {level: loud}", "state_dir: ''",
	"train: {epochs: -1}"}

// formsOf returns the urlForms that an address may be mistaken for. What has no scheme is a directory to the store.
func formsOf(path string) []string {
	if path != "store" {
		return urlForms
	}
	return slices.DeleteFunc(slices.Clone(urlForms), func(form string) bool { return !strings.Contains(form, "://") })
}

// urlForms are addresses with credentials, and settings in the manner of libpq.
var urlForms = []string{"http://user:VALUE@host:80", "http://VALUE@host:80", "https://VALUE:x@host:80/p",
	"http://host:80/?key=VALUE",
	"http://host:80/#VALUE", "user:VALUE@host:80", "VALUE@host:80", "postgres://u:VALUE@host/db",
	"postgres://host/db?password=VALUE",
	"postgres://u:VALUE%zz@host/db", "postgres://u:pa/VALUE@host/db", "host=h password=VALUE",
	"host=h password='VALUE' user=u",
	"s3://key:VALUE@bucket/prefix", "s3://bucket/prefix?secret=VALUE", "://VALUE@", "http://[VALUE@host",
	"//u:VALUE@host:80",
	"file:///d?VALUE", "file://u:VALUE@/d"}

// plant returns a file with a secret in it.
func plant(r *rand.Rand, secret string) string {
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	path, value := pick(secretFields), secret
	if r.IntN(3) == 0 {
		path = pick(append(slices.Clone(addressFields), secretFields...))
		value = strings.ReplaceAll(pick(formsOf(path)), "VALUE", secret)
	}
	names := strings.Split(path, ".")
	key := names[len(names)-1]
	depth := len(names) - 1
	entry := pick(styles)
	var file strings.Builder
	line := func(text string) { file.WriteString(text + "\n") }
	line(pick(faultyLines))
	if r.IntN(3) == 0 && depth > 0 { // in braces
		flow := write(entry, key, value, " ")
		for range r.IntN(3) {
			flow = pick([]string{"a: b, ", "username: me, ", "", "{", "- "}) + flow + pick([]string{", a: b",
				", username: me", "", "}", "]"})
		}
		for _, section := range slices.Backward(names[:depth]) {
			flow = section + ": {" + flow + "}"
		}
		line(flow)
	} else {
		for i, section := range names[:depth] {
			line(strings.Repeat("  ", i) + section + ":" + pick([]string{"", "", "", " #", " &a", " |", " x"}))
		}
		indent := strings.Repeat("  ", depth)
		if r.IntN(4) == 0 {
			line(indent + pick(faultyLines))
		}
		line(indent + write(entry, key, value, indent))
		if r.IntN(4) == 0 {
			line(indent + pick(faultyLines))
		}
	}
	line(pick(faultyLines))
	return file.String()
}

// disturb puts marks of YAML between the characters of a file, and takes marks out.
func disturb(file string, edits []byte) string {
	const marks = " \n\r\t:,-?[]{}#&*!|>'\"%@`\\~$="
	const most = 8
	for i := 0; i+2 < min(len(edits), 3*most); i += 3 {
		at := (int(edits[i])<<8 | int(edits[i+1])) % (len(file) + 1)
		switch mark := int(edits[i+2]) % (len(marks) + 1); {
		case mark < len(marks):
			file = file[:at] + marks[mark:mark+1] + file[at:]
		case at < len(file) && strings.ContainsRune(marks[3:], rune(file[at])):
			file = file[:at] + file[at+1:]
		}
	}
	return file
}

// standing is the configuration that a process runs with.
var standing = config.Default()

// said is all that the package says of a file: to those who wrote it, in logs, and of what runs with it.
func said(file, secret string) string {
	var out bytes.Buffer
	env := func(name string) (string, bool) { return secret, name == "FROM_ENVIRONMENT" }
	log := slog.New(slog.NewTextHandler(&out, nil))
	for _, read := range []func() (config.Config, error){
		func() (config.Config, error) { return config.Parse([]byte(file), env) },
		func() (config.Config, error) { return standing.Overlay([]byte(file)) },
		func() (config.Config, error) {
			c := standing
			err := c.Set(strings.Split(file, "\n")...)
			if err == nil {
				err = c.Validate()
			}
			return c, err
		},
	} {
		c, err := read()
		if err != nil {
			fmt.Fprintf(&out, "%v\n%+v\n%q\n", err, err, err)
			log.Error("refused", "error", err)
			if faults, ok := errors.AsType[*config.Error](err); ok {
				for _, f := range faults.Faults {
					fmt.Fprintf(&out, "%+v\n", f)
				}
			}
			continue
		}
		_, refused := config.LiveChanges(&standing, &c)
		fmt.Fprintln(&out, c.Fields(), config.Diff(&standing, &c), refused, c.Warnings(), c.Renamed())
		fmt.Fprintf(&out, "%v %+v %#v\n", c, c, c)
		log.Info("read", "config", c)
		for _, marshal := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal} {
			text, err := marshal(c)
			fmt.Fprintf(&out, "%s %v\n", text, err)
		}
	}
	return out.String()
}

// keepsQuiet fails a test of which the file makes the package tell the secret.
func keepsQuiet(t *testing.T, file, secret string) {
	t.Helper()
	if text := said(file, secret); canary.Find(text, secret) != "" {
		for line := range strings.Lines(text) {
			if canary.Find(line, secret) != "" {
				text = line
				break
			}
		}
		t.Fatalf("the secret shows %s in\n%s\nfor the file\n%s", canary.Find(text, secret), text, file)
	}
}

// No secret is in anything that the package says of a file, however the file is written and whatever is wrong in it.
func TestSecretsStayInFiles(t *testing.T) {
	if n := len(secretFields); n < 10 {
		t.Fatalf("%d secret fields", n)
	}
	secret := canary.New(1)
	// Each field in each style, and each address in each form, alone.
	for _, path := range secretFields {
		for _, style := range styles {
			keepsQuiet(t, alone(path, style, secret), secret)
		}
	}
	for _, path := range append(slices.Clone(addressFields), "sinks.pgvector.url") {
		for _, form := range formsOf(path) {
			for _, style := range styles[:4] {
				keepsQuiet(t, alone(path, style, strings.ReplaceAll(form, "VALUE", secret)), secret)
			}
		}
	}
	const element = "http:\n  tokens:\n  - name: shop\n    scopes: [read]\n    "
	for _, style := range styles {
		keepsQuiet(t, element+write(style, "token", secret, "    ")+"\n", secret)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 { // FuzzSecretsStayInFiles plants others
		keepsQuiet(t, plant(r, secret), secret)
	}
}

// alone is a file with one field.
func alone(path, style, value string) string {
	var file strings.Builder
	names := strings.Split(path, ".")
	indent := ""
	for _, section := range names[:len(names)-1] {
		file.WriteString(indent + section + ":\n")
		indent += "  "
	}
	return file.String() + indent + write(style, names[len(names)-1], value, indent) + "\n"
}

// write fills a style.
func write(style, key, value, indent string) string {
	return strings.NewReplacer("KEY", key, "VALUE", value, ">", indent).Replace(style)
}

// What is dialled is refused with credentials or a query in it, which would be in errors of the network.
func TestAddressesTakeNoCredentials(t *testing.T) {
	if n := len(addressFields); n < 9 {
		t.Fatalf("%d addresses", n)
	}
	for _, path := range addressFields {
		for _, form := range formsOf(path) {
			c := standing
			if err := c.Set(path + "=" + form); err != nil {
				t.Fatal(err)
			}
			faults, ok := errors.AsType[*config.Error](c.Validate())
			if !ok || !slices.ContainsFunc(faults.Faults, func(f config.Fault) bool { return f.Path == path }) {
				t.Errorf("%s takes %s", path, form)
			}
		}
	}
}

// FuzzSecretsStayInFiles disturbs files with a secret.
func FuzzSecretsStayInFiles(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, []byte{0, byte(seed), byte(seed)})
	}
	f.Fuzz(func(t *testing.T, seed uint64, edits []byte) {
		secret := canary.New(1)
		file := disturb(plant(rand.New(rand.NewPCG(seed, 0)), secret), edits)
		if strings.Contains(file, "${"+secret+"}") {
			t.Skip("a reference to a variable of that name")
		}
		if swallowed(file, secret) {
			t.Skip("a quote has made the secret's field a part of another one's text")
		}
		keepsQuiet(t, file, secret)
	})
}

// swallowed says whether the value of a field has other fields in it, the secret's included.
func swallowed(file, secret string) bool {
	env := func(string) (string, bool) { return "", false }
	parsed, err := config.Parse([]byte(file), env)
	overlaid, err2 := standing.Overlay([]byte(file))
	for c, err := range map[*config.Config]error{&parsed: err, &overlaid: err2} {
		if err == nil && slices.ContainsFunc(c.Fields(), func(f config.Field) bool {
			return strings.Contains(f.Value, secret) && strings.Contains(f.Value, ": ")
		}) {
			return true
		}
	}
	return false
}
