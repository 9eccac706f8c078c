package kernels

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestImageFitsTheDevice(t *testing.T) {
	for _, c := range []struct {
		major, minor int
		sm           byte // of the cubin; 0 for PTX
	}{{7, 0, 70}, {7, 2, 70}, {7, 5, 75}, {8, 0, 80}, {8, 6, 80}, {8, 9, 80}, {9, 0, 90}, {10, 0, 0}, {12, 1, 0}} {
		t.Run(fmt.Sprintf("%d.%d", c.major, c.minor), func(t *testing.T) {
			image, err := Image(c.major, c.minor)
			if err != nil {
				t.Fatal(err)
			}
			if c.sm == 0 {
				if !strings.Contains(image, ".target sm_80") {
					t.Error("not PTX for 8.0 and newer")
				}
				return
			}
			const flags = 48 // e_flags of a 64-bit ELF header: the lowest byte is the architecture
			if !strings.HasPrefix(image, "\x7fELF") || image[flags] != c.sm {
				t.Errorf("a cubin for sm_%d, want sm_%d", image[flags], c.sm)
			}
		})
	}
	if _, err := Image(6, 1); err == nil {
		t.Error("a device of 6.1 has an image")
	}
}

// TestImagesAreOfTheSources compares what build.py says it made the images of with the sources.
// NVRTC 11.8 does not give the same bytes every time, so the images themselves cannot be compared.
func TestImagesAreOfTheSources(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	h, sources := sha256.New(), 0
	for _, f := range files {
		if ext := filepath.Ext(f.Name()); ext != ".cu" && ext != ".cuh" {
			continue
		}
		data, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(h, "%s\x00%s\x00", f.Name(), data)
		sources++
	}
	script, err := os.ReadFile("build.py")
	if err != nil {
		t.Fatal(err)
	}
	options := 0
	for line := range strings.Lines(string(script)) {
		for _, name := range []string{"ARCHITECTURES = ", "PTX = ", "OPTIONS = "} {
			if strings.HasPrefix(line, name) {
				fmt.Fprintf(h, "%s\x00", strings.TrimSuffix(line, "\n"))
				options++
			}
		}
	}
	if sources < 5 || options != 3 {
		t.Fatalf("%d sources and %d options were found", sources, options)
	}
	want, err := os.ReadFile("images/sources.sha256")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x\n", h.Sum(nil)); got != string(want) {
		t.Error("the images are of other sources: run build.py SDK images (docs/CUDA.md)")
	}
}
