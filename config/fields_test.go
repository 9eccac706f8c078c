package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var effects = []Effect{Live, Restart, NextGeneration, Encoding, Graph, NewPipeline}

// Every field has an effect of its own, next to it, and the example says the same: by a mark on the field, on the
// nearest section with one, or by none for a restart.
func TestEveryFieldHasAnEffect(t *testing.T) {
	described := descriptions()
	marked := func(path string) Effect {
		for ; path != ""; path = parent(path) {
			if _, mark := cutEffect(described[path]); mark != "" {
				return mark
			}
		}
		return Restart
	}
	c := Default()
	for _, f := range c.Fields() {
		if !slices.Contains(effects, f.Effect) {
			t.Errorf("%s has the effect %q; give its field a tag with one of %v", f.Path, f.Effect, effects)
		}
		if mark := marked(f.Path); mark != f.Effect {
			t.Errorf("%s: the example says %s, the field %s", f.Path, mark, f.Effect)
		}
	}
}

func TestLiveChanges(t *testing.T) {
	from := Default()
	from.Kafka.SASL.Password = "hunter2"
	to := from
	if changes, err := LiveChanges(&from, &to); err != nil || len(changes) > 0 {
		t.Errorf("between equal ones: %v, %v", changes, err)
	}
	to.Window.Time, to.Log.Level = 2*time.Second, "debug"
	changes, err := LiveChanges(&from, &to)
	want := []Change{{"window.time", "1s", "2s", Live}, {"log.level", "info", "debug", Live}}
	if err != nil || !reflect.DeepEqual(changes, want) {
		t.Errorf("%v, %v", changes, err)
	}
	// One field that is not live refuses all, and each of them is named with what it needs.
	to.Kafka.SASL.Password, to.Train.Encoder, to.Shards, to.HTTP.Listen = "correct horse", "bag", 9, ""
	changes, err = LiveChanges(&from, &to)
	faults, ok := errors.AsType[*Error](err)
	if !ok || changes != nil || len(faults.Faults) != 4 {
		t.Fatalf("%v, %v", changes, err)
	}
	for _, say := range []string{
		"shards: cannot change from 8 to 9 while the service runs: it decides what the store holds",
		"kafka.sasl.password: cannot change from *** to *** (another) while the service runs: it needs a restart",
		"train.encoder: cannot change from hybrid to bag while the service runs: " +
			"it needs a restart, and 'giantstream rebuild'",
		`http.listen: cannot change from 127.0.0.1:9464 to "" while`} {
		if !strings.Contains(err.Error(), say) {
			t.Errorf("no %q in\n%v", say, err)
		}
	}
	for _, secret := range []string{"hunter2", "correct horse", "window.time"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q in\n%v", secret, err)
		}
	}
}

// With changes the fields that are given and no other, checks the whole, and reads no variable.
func TestWith(t *testing.T) {
	t.Setenv("SECRET", "hunter2")
	c := Default()
	c.Window.Changes = 7
	next, err := c.Overlay([]byte(`{"window": {"time": "2s"}}`))
	if err != nil || next.Window.Time != 2*time.Second || next.Window.Changes != 7 || c.Window.Time != time.Second {
		t.Errorf("%+v, %v", next.Window, err)
	}
	for _, bad := range []string{"window: {time: 0s}", "window: {tmie: 2s}", "log: {level: '${SECRET}'}", "[]", "- a"} {
		if _, err := c.Overlay([]byte(bad)); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
