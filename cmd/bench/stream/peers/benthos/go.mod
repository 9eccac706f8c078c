module benthos

go 1.26

require github.com/benthosdev/benthos/v4 v4.27.0
