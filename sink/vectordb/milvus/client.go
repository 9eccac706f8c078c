package milvus

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"giantstream/sink/vectordb"
)

// requestTime bounds a request and its answer.
const requestTime = time.Minute

// maxAnswer bounds an answer in memory.
const maxAnswer = 64 << 20

// dial returns a client, which connects when it is first used.
func dial(o Options) (*grpc.ClientConn, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	port, security := "80", insecure.NewCredentials()
	if u.Scheme == "https" {
		conf := o.TLS
		if conf == nil {
			conf = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		port, security = "443", credentials.NewTLS(conf)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	var headers []string
	if o.Database != "" {
		headers = append(headers, "dbname", o.Database)
	}
	if o.Token != "" {
		headers = append(headers, "authorization", base64.StdEncoding.EncodeToString([]byte(o.Token)))
	}
	every := func(ctx context.Context, method string, req, reply any, c *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, headers...), requestTime)
		defer cancel()
		return invoke(ctx, method, req, reply, c, opts...)
	}
	return grpc.NewClient("dns:///"+net.JoinHostPort(u.Hostname(), port), append([]grpc.DialOption{
		grpc.WithTransportCredentials(security), grpc.WithUnaryInterceptor(every),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
	}, o.dial...)...)
}

// Codes of Milvus's errors.
const (
	codeCollectionNotFound = 100
	codeDatabaseNotFound   = 800
	codeParameterInvalid   = 1100
	codeParameterTooLarge  = 1102
	codeNotAuthenticated   = 1400
	codeNotPermitted       = 1401
)

// serverError is an answer that is no success.
type serverError struct {
	what string
	code int32
	text string
}

func (e *serverError) Error() string {
	return fmt.Sprintf("%s: Milvus says %d: %s", e.what, e.code, e.text)
}

// Final reports whether the server would refuse the request again.
func (e *serverError) Final() bool {
	switch c := e.code; c {
	case codeDatabaseNotFound, codeNotAuthenticated, codeNotPermitted:
		return true
	default:
		return c >= codeParameterInvalid && c <= codeParameterTooLarge
	}
}

// missing reports whether the collection or alias of a request does not exist.
func missing(err error) bool {
	e, ok := errors.AsType[*serverError](err)
	return ok && e.code == codeCollectionNotFound
}

// check turns the two ways in which a request fails into one.
func check(what string, st *commonpb.Status, err error) error {
	if err != nil {
		switch status.Code(err) {
		case codes.InvalidArgument, codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented:
			return fmt.Errorf("%w: %s: %w", vectordb.ErrRefused, what, err)
		default:
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	code := st.GetCode()
	if code == 0 {
		// Servers before 2.3 fill in this one alone.
		code = int32(st.GetErrorCode()) //nolint:staticcheck // see above
	}
	if code == 0 {
		return nil
	}
	return &serverError{what, code, st.GetReason()}
}

// answer is a message with a status.
type answer interface{ GetStatus() *commonpb.Status }

// checked returns the answer of a request, or why it failed.
func checked[T answer](what string, a T, err error) (T, error) {
	return a, check(what, a.GetStatus(), err)
}

// aliases returns the names that lead to a collection.
func (x *Index) aliases(ctx context.Context, collection string) ([]string, error) {
	a, err := x.c.ListAliases(ctx, &milvuspb.ListAliasesRequest{CollectionName: collection})
	a, err = checked("list the aliases of "+collection, a, err)
	return a.GetAliases(), err
}

func (x *Index) createAlias(ctx context.Context, alias, collection string) error {
	st, err := x.c.CreateAlias(ctx, &milvuspb.CreateAliasRequest{CollectionName: collection, Alias: alias})
	return check("create the alias "+alias, st, err)
}

func (x *Index) dropAlias(ctx context.Context, alias string) error {
	st, err := x.c.DropAlias(ctx, &milvuspb.DropAliasRequest{Alias: alias})
	return check("drop the alias "+alias, st, err)
}

// lead makes an alias lead to a collection, whether or not it leads to another.
func (x *Index) lead(ctx context.Context, alias, collection string) error {
	st, err := x.c.AlterAlias(ctx, &milvuspb.AlterAliasRequest{CollectionName: collection, Alias: alias})
	err = check("change the alias "+alias, st, err)
	if e, ok := errors.AsType[*serverError](err); ok && !e.Final() {
		return x.createAlias(ctx, alias, collection) // which fails if it is there, and is tried again
	}
	return err
}
