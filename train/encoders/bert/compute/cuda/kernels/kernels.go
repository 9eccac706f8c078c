// Package kernels has the kernels of package cuda: sources, and the images that build.py makes of
// them for devices of compute capability 7.0 to 9.x, and PTX, which drivers compile for others.
package kernels

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
)

//go:embed images/*.gz
var images embed.FS

// cubins are the compute capabilities that have an image of their own. An image runs on devices of
// the same major version and of no smaller minor version.
var cubins = []struct{ major, minor int }{{9, 0}, {8, 0}, {7, 5}, {7, 0}}

// Image returns the image for a device of the given compute capability.
func Image(major, minor int) (string, error) {
	name := "compute_80.ptx"
	if major < 7 {
		return "", fmt.Errorf("its compute capability is %d.%d, the kernels need 7.0 (V100, T4, A100, …)", major, minor)
	}
	for _, c := range cubins {
		if c.major == major && c.minor <= minor {
			name = fmt.Sprintf("sm_%d%d.cubin", c.major, c.minor)
			break
		}
	}
	data, err := images.ReadFile("images/" + name + ".gz")
	if err != nil {
		return "", fmt.Errorf("kernels: %w", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return "", fmt.Errorf("kernels: %s: %w", name, err)
	}
	image, err := io.ReadAll(z)
	if err != nil {
		return "", fmt.Errorf("kernels: %s: %w", name, err)
	}
	return string(image), nil
}
