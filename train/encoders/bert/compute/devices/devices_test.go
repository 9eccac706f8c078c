package devices_test

import (
	"errors"
	"strings"
	"testing"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/computetest"
	"giantstream/train/encoders/bert/compute/cpu"
	"giantstream/train/encoders/bert/compute/devices"
)

func TestOpen(t *testing.T) {
	broken := errors.New("broken")
	var number int
	var options devices.Options
	drivers := devices.Drivers{
		"cuda": func(n int, o devices.Options) (devices.Device, error) {
			number, options = n, o
			return computetest.NewDevice(cpu.New(), computetest.DeviceOptions{}), nil
		},
		"broken": func(int, devices.Options) (devices.Device, error) { return nil, broken },
	}
	for _, c := range []struct {
		name string
		want string // of the device
		n    int
		err  error
	}{
		{name: "cpu", want: "cpu"},
		{name: "cuda", want: "emulated device"},
		{name: "cuda:0", want: "emulated device"},
		{name: "cuda:12", want: "emulated device", n: 12},
		{name: "broken:1", err: broken},
		{name: "vulkan", err: devices.ErrNoDriver},
		{name: "", err: devices.ErrName},
		{name: ":1", err: devices.ErrName},
		{name: "cpu:0", err: devices.ErrName},
		{name: "cuda:", err: devices.ErrName},
		{name: "cuda:01", err: devices.ErrName},
		{name: "cuda:-1", err: devices.ErrName},
		{name: "cuda:70000", err: devices.ErrName},
	} {
		number, options = 0, devices.Options{}
		asked := devices.Options{Memory: 5 << 30, Math: compute.TF32}
		d, err := drivers.Open(c.name, asked)
		if !errors.Is(err, c.err) {
			t.Errorf("%q: %v, want %v", c.name, err, c.err)
		}
		if err != nil {
			continue
		}
		if d.Name() != c.want || d.Emulated() != (c.want != "cpu") || number != c.n {
			t.Errorf("%q: %s, emulated %t, number %d; want %s, number %d", c.name, d.Name(), d.Emulated(), number,
				c.want, c.n)
		}
		if d.Emulated() && options != asked {
			t.Errorf("%q: opened with %+v, want %+v", c.name, options, asked)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	var none devices.Drivers
	_, err := none.Open("cuda:1", devices.Options{})
	if !errors.Is(err, devices.ErrNoDriver) || !strings.Contains(err.Error(), "cuda:1") {
		t.Errorf("without drivers: %v, want %v, which names the device", err, devices.ErrNoDriver)
	}
}

// The CPU's batches are sized for its cache, and its buffers are the garbage collector's.
func TestTheCPUAsksForNothing(t *testing.T) {
	d, err := devices.Drivers(nil).Open("cpu", devices.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if got := compute.BatchTokens(d, 1, 77); got != 77 {
		t.Errorf("batches of %d tokens, want what the caller takes otherwise, 77", got)
	}
	x := d.Upload([]float32{1, 2})
	compute.Free(d, x, nil)
	got := make([]float32, 2)
	if err := d.Read(got, x); err != nil || got[1] != 2 {
		t.Errorf("a buffer of the CPU after Free: %v, %v", got, err)
	}
}
