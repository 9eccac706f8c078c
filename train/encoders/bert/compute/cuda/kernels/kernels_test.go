package kernels

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
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
				if !strings.Contains(image, ".target sm_70") {
					t.Error("not PTX for 7.0 and newer")
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

// TestImagesAreOfTheSources builds the images again: the same sources give the same bytes.
func TestImagesAreOfTheSources(t *testing.T) {
	sdk := os.Getenv("GIANTSTREAM_CUDA_SDK")
	if sdk == "" {
		t.Skip("GIANTSTREAM_CUDA_SDK names no folder with the unpacked wheel nvidia-cuda-nvrtc-cu11 (docs/CUDA.md)")
	}
	out := t.TempDir()
	if log, err := exec.CommandContext(t.Context(), "python3", "build.py", sdk, out).CombinedOutput(); err != nil {
		t.Fatalf("build.py: %v\n%s", err, log)
	}
	built, err := filepath.Glob(filepath.Join(out, "*.gz"))
	if err != nil {
		t.Fatal(err)
	}
	known, err := images.ReadDir("images")
	if err != nil {
		t.Fatal(err)
	}
	if len(built) != len(known) || len(built) == 0 {
		t.Errorf("%d images were built, %d are committed", len(built), len(known))
	}
	for _, path := range built {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := images.ReadFile("images/" + filepath.Base(path))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the sources give: run build.py SDK images", filepath.Base(path))
		}
	}
}
