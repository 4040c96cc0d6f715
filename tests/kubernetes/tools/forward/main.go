// Forwards connections to an address inside a network namespace: forward 127.0.0.1:26443 /proc/PID/ns/net 10.250.0.1:6443.
// It listens where it is started.
package main

import (
	"io"
	"log"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: forward LISTEN-ADDRESS NAMESPACE-FILE ADDRESS")
	}
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	namespace, err := os.Open(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	for {
		client, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			defer client.Close()
			server, err := dial(namespace, os.Args[3])
			if err != nil {
				log.Print(err)
				return
			}
			defer server.Close()
			go pass(client.(*net.TCPConn), server.(*net.TCPConn))
			pass(server.(*net.TCPConn), client.(*net.TCPConn))
		}()
	}
}

// dial connects from within the namespace. A socket belongs to the namespace of the thread that opens it; the thread is
// not unlocked and so ends with the goroutine, because it may not serve others.
func dial(namespace *os.File, address string) (net.Conn, error) {
	type result struct {
		connection net.Conn
		err        error
	}
	results := make(chan result)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			results <- result{nil, err}
			return
		}
		connection, err := net.Dial("tcp", address)
		results <- result{connection, err}
	}()
	r := <-results
	return r.connection, r.err
}

func pass(to, from *net.TCPConn) {
	_, _ = io.Copy(to, from)
	_ = to.CloseWrite()
}
