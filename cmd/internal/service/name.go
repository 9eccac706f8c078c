package service

import (
	"fmt"
	"os"
)

// writerName names this process in manifests, for people who read them.
func writerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}
