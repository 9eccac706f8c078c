package computetest

import (
	"errors"
	"strings"
	"testing"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/cpu"
)

func TestDevice(t *testing.T) {
	d := NewDevice(cpu.New(), DeviceOptions{})
	Run(t, d)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	d.Check(t)
}

// Each misuse is noticed.
func TestDeviceNoticesMisuse(t *testing.T) {
	mark := new(compute.Mark)
	text := func(ids ...int32) compute.Batch {
		return compute.Batch{IDs: ids, Start: []int32{0, int32(len(ids))}, Mark: mark}
	}
	for want, misuse := range map[string]func(d *Device){
		"used after Free": func(d *Device) {
			b := d.New(3)
			d.Free(b)
			d.Zero(b)
		},
		"freed twice": func(d *Device) {
			b := d.New(3)
			d.Free(b)
			d.Free(b)
		},
		"after Close": func(d *Device) {
			b := d.New(3)
			_ = d.Close()
			d.Zero(b)
		},
		"closed twice": func(d *Device) { _ = errors.Join(d.Close(), d.Close()) },
		"buffer of another backend is used": func(d *Device) {
			d.Zero(cpu.New().New(3))
		},
		"same mark differ": func(d *Device) {
			x, y := d.Upload(make([]float32, 4)), d.New(4)
			d.Pool(y, x, text(1, 2), 2, compute.Mean)
			d.Pool(y, x, text(1, 3), 2, compute.Mean)
		},
	} {
		d := NewDevice(cpu.New(), DeviceOptions{})
		misuse(d)
		if !d.closed {
			_ = d.Close()
		}
		if faults := strings.Join(d.Faults(), "; "); !strings.Contains(faults, want) {
			t.Errorf("the faults are %q, want %q", faults, want)
		}
	}
}

// After a failure, Read returns it for ever, and memory that is freed can be used again.
func TestDeviceFails(t *testing.T) {
	small := NewDevice(cpu.New(), DeviceOptions{Memory: 40})
	defer small.Close()
	b := small.Upload(make([]float32, 10))
	small.Free(b)
	b = small.Upload(make([]float32, 10))
	if err := small.Read(make([]float32, 10), b); err != nil {
		t.Errorf("after all was freed: %v", err)
	}
	lost := NewDevice(cpu.New(), DeviceOptions{LostAfter: 2})
	defer lost.Close()
	c := lost.Upload(make([]float32, 10))
	lost.Zero(c)
	small.New(1)
	for range 2 {
		if err := small.Read(make([]float32, 10), b); !errors.Is(err, ErrMemory) {
			t.Errorf("44 bytes of 40: %v, want %v", err, ErrMemory)
		}
		if err := lost.Read(make([]float32, 10), c); !errors.Is(err, ErrLost) {
			t.Errorf("third operation: %v, want %v", err, ErrLost)
		}
	}
}
