// Package stages says how a build is divided. A Plan names the Stages, which come one after the other, the tasks of
// each, and which stages it reads. NewPlan makes the plan of a graph of some Size; the plan is stored when the build
// begins, and no task changes it. How a stage is done is the business of the packages above.
package stages
