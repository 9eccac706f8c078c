package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Broker is a Kafka broker in a process of its own, which can be killed without notice and started
// again on its log.
type Broker struct {
	dir, listen, advertised string
	cmd                     *exec.Cmd
	// stdin, once closed, ends the process: it does not outlive its parent.
	stdin io.Closer
}

// brokerEnv makes the program a broker.
const brokerEnv = "GIANTSTREAM_FAULTS_BROKER"

// NewBroker describes a broker that keeps its log in dir and listens on the address; clients are
// sent to the advertised one, a proxy's.
func NewBroker(dir, listen, advertised string) *Broker {
	return &Broker{dir: dir, listen: listen, advertised: advertised}
}

// Start runs this same program as the broker, and returns once the broker answers. The program's
// main function, or TestMain, must call ServeBroker first. The process is killed when ctx ends, at
// the latest.
func (b *Broker) Start(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	b.cmd = exec.CommandContext(ctx, program)
	b.cmd.Env = append(os.Environ(), brokerEnv+"="+strings.Join([]string{b.dir, b.listen, b.advertised}, "|"))
	b.cmd.Stderr = os.Stderr
	if b.stdin, err = b.cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, err := b.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := b.cmd.Start(); err != nil {
		return err
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		return errors.Join(fmt.Errorf("the broker on %s has not started: %q: %w", b.listen, line, err), b.Kill())
	}
	return nil
}

// Kill ends the process without notice. What it has acknowledged is in its log.
func (b *Broker) Kill() error {
	err := errors.Join(b.cmd.Process.Kill(), b.stdin.Close())
	_ = b.cmd.Wait() // it was killed
	return err
}

// ServeBroker is the other side of Start: if this process is to be a broker, it serves until its
// parent ends or kills it, and does not return.
func ServeBroker() {
	args := strings.Split(os.Getenv(brokerEnv), "|")
	if len(args) != 3 {
		return
	}
	if err := serveBroker(args[0], args[1], args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "broker:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serveBroker(dir, listen, advertised string) error {
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	address, err := net.ResolveTCPAddr("tcp", advertised)
	if err != nil {
		return err
	}
	cluster, err := kfake.NewCluster(
		kfake.Ports(number),
		kfake.DataDir(filepath.Join(dir, "log")),
		kfake.GroupMinSessionTimeout(100*time.Millisecond),
		kfake.ListenFn(func(network, at string) (net.Listener, error) {
			l, err := (&net.ListenConfig{}).Listen(context.Background(), network, at)
			return listener{l, address}, err
		}),
	)
	if err != nil {
		return err
	}
	defer cluster.Close()
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// listener reports another address than its own; kfake sends clients to that address.
type listener struct {
	net.Listener
	advertised net.Addr
}

func (l listener) Addr() net.Addr { return l.advertised }
