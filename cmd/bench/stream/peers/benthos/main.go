// Command benthos is Benthos with the few components that the benchmark uses.
package main

import (
	"context"

	_ "github.com/benthosdev/benthos/v4/public/components/aws"
	_ "github.com/benthosdev/benthos/v4/public/components/io"
	_ "github.com/benthosdev/benthos/v4/public/components/kafka"
	_ "github.com/benthosdev/benthos/v4/public/components/pure"
	_ "github.com/benthosdev/benthos/v4/public/components/pure/extended"
	"github.com/benthosdev/benthos/v4/public/service"
)

func main() { service.RunCLI(context.Background()) }
