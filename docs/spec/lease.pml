/*
 * The lease and its fencing numbers: sink/lease, "Numbers" and "What a zombie can do"; PROTOCOL.md, "Fencing".
 *
 * PROCESSES processes want the lease. Time is not modelled: a process may at any point take the holder for
 * silent, dead or finished, and take the next number. So nothing below depends on the time to live. A
 * process may be killed at any point, stand still for any time, and not learn what a request did.
 *
 * run -DPROCESSES=3 -DNUMBERS=4
 *
 * mutants -DPROCESSES=3 -DNUMBERS=4
 * mutant BUG_NO_CHECK       GrantsAscend     a removed number wins again: a late create is not checked
 * mutant BUG_DELETE_OWN     GrantsAscend     a removed number wins again: the release removes the newest object
 * mutant BUG_PUT_NUMBER     GrantsAscend     a number is put, not created
 * mutant BUG_DELETE_OTHERS  GrantsAscend     the lower numbers are listed when they are deleted, as "not mine"
 * mutant BUG_CHECK_ONCE     OneLateWrite     writes are checked when the lease is taken, and not again
 */

hidden byte GrantsAscend, CheckedIsNewest, OneLateWrite;

short objects;        /* lease/<name>/<number>: bit per number */
byte granted;         /* the highest number that a process was given */
byte by[NUMBERS + 1]; /* whose object it is; read only where there is one */

#define bitOf(n) (1 << (n))
#define HIGHER (objects >> (number + 1))

mtype = { Idle, Take, Check, Clean, Holding, Writing, Renewing, Releasing };

proctype Process() {
	byte number;   /* ours, or the one that we want */
	short lower;   /* numbers that the listing had */
	bit late;      /* one write has landed after another process was given the lease */
	mtype pc = Idle;

end:	do
	/* List the numbers. The newest is our own if an earlier answer was lost, else take the next. */
	:: atomic { pc == Idle ->
		number = 0;
		do
		:: objects >> (number + 1) -> number++
		:: else -> break
		od;
		lower = objects;
		if
		:: number > 0 && by[number] == _pid -> lower = 0; pc = Check
		:: !(number > 0 && by[number] == _pid) && number < NUMBERS -> number++; pc = Take
		:: else -> lower = 0; number = 0
		fi }

	:: atomic { pc == Take ->
		if
#ifdef BUG_PUT_NUMBER
		:: true ->
#else
		:: objects & bitOf(number) -> goto idle /* ErrExists: another process was faster */
		:: !(objects & bitOf(number)) ->
#endif
			objects = objects | bitOf(number); by[number] = _pid;
			if :: pc = Check :: goto idle /* the answer is lost */ fi
		fi }

	/* A number that was taken and removed long ago is free: believe it only if it is the highest. */
	:: atomic { pc == Check ->
		if
#ifndef BUG_NO_CHECK
		:: HIGHER -> goto idle
		:: !HIGHER ->
#else
		:: true ->
#endif
			assert(GrantsAscend || number > granted || (number == granted && by[number] == _pid));
			granted = number; pc = Clean
		fi }
	:: atomic { pc == Clean ->
#ifdef BUG_DELETE_OTHERS
		objects = objects & bitOf(number);
#else
		objects = objects & ~lower;
#endif
		lower = 0; pc = Holding }

	/* Before each write, look for a higher number. */
	:: atomic { pc == Holding ->
#ifndef BUG_CHECK_ONCE
		if
		:: HIGHER -> goto idle /* ErrLost */
		:: else -> assert(CheckedIsNewest || number == granted)
		fi;
#endif
		if :: pc = Writing :: pc = Renewing :: pc = Releasing fi }
	:: atomic { pc == Writing ->
		assert(OneLateWrite || number == granted || !late);
		if :: number != granted -> late = 1 :: else fi;
		pc = Holding }
	/* Renewing puts the own object, also if a successor has removed it meanwhile. */
	:: atomic { pc == Renewing -> objects = objects | bitOf(number); by[number] = _pid; pc = Holding }
	:: atomic { pc == Releasing ->
#ifdef BUG_DELETE_OWN
		objects = objects & ~bitOf(number);
#else
		objects = objects | bitOf(number); by[number] = 0;
#endif
		goto idle }

	/* Killed, or given up. Another process with the same bounds takes its place. */
	:: atomic { pc != Idle -> goto killed }
	od;
killed:	atomic {
		if :: by[number] == _pid -> by[number] = 0 :: else fi }
idle:	atomic { number = 0; lower = 0; late = 0; pc = Idle; goto end }
}

init {
	atomic {
		byte i;
		for (i : 1 .. PROCESSES) { run Process() }
	}
}
