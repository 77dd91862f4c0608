import { runProgram } from './program/program.ts';

// Imports modules other than commander on demand, because every import slows down every start.

const { argv, env, stdout, stderr } = process;

// Exits without a message when the reader closes the pipe, as in `muster … | head`.
stderr.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  const why = error.code === 'ENOSPC' ? 'no space left' : error.message;
  stderr.write(`error: cannot write to standard output: ${why}\n`);
  process.exit(1);
});

// Exits with a failure if the process exits before the program has a result.
process.exitCode = 1;
void runProgram(argv.slice(2), {
  env,
  // Opened on demand, because opening takes several milliseconds and few commands read standard input.
  get stdin() {
    return process.stdin;
  },
  stdout,
  stderr,
  now: () => Date.now() / 1000,
  sleep: (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds)),
  terminal: async () => (await import('./terminal/local-terminal.ts')).openLocalTerminal(process),
  onInterrupt: (say) => {
    const leave = () => {
      process.off('SIGINT', onSigint);
      // Terminates the process with the signal, so that the shell can detect it.
      process.kill(process.pid, 'SIGINT');
    };
    const onSigint = () => {
      if (say(leave) !== 'stay') leave();
    };
    process.on('SIGINT', onSigint);
    return () => process.off('SIGINT', onSigint);
  },
  onEnd: (say) => {
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
    const release = () => {
      for (const signal of signals) process.off(signal, onSignal);
    };
    const onSignal = (signal: NodeJS.Signals) => {
      release();
      try {
        say();
      } catch {
        // The terminal was closed, so there are no settings to restore.
      }
      process.kill(process.pid, signal);
    };
    for (const signal of signals) process.on(signal, onSignal);
    return release;
  },
}).then((exit) => {
  process.exitCode = exit;
  // Does not wait for a late response from the orchestrator.
  if (argv[2] === '__complete') process.exit();
});
