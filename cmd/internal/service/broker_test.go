package service

import (
	"errors"
	"testing"

	"giantstream/ingest/broker"
)

func TestErrorsOfAFullBrokerSaySo(t *testing.T) {
	free := uint64(1 << 40)
	b, err := broker.Start(broker.Options{Dir: t.TempDir(), Free: func(string) (uint64, error) { return free, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close() //nolint:errcheck // only looked at
	s, unknown := &Service{broker: b}, errors.New("an unexpected server error occurred")
	for _, tt := range []struct {
		free      uint64
		err       error
		explained bool
	}{{1 << 40, unknown, false}, {1 << 20, unknown, true}, {1 << 20, nil, false}} {
		free = tt.free
		got := s.Explain(tt.err)
		if errors.Is(got, broker.ErrDiskFull) != tt.explained || tt.err != nil && !errors.Is(got, tt.err) {
			t.Errorf("%d bytes free: %v became %v", tt.free, tt.err, got)
		}
	}
	if got := (&Service{}).Explain(unknown); !errors.Is(got, unknown) || errors.Is(got, broker.ErrDiskFull) {
		t.Errorf("without an embedded broker: %v", got)
	}
}
