import { runProgram } from './program/program.ts';

// What is imported here is paid for by every `muster --help`: commander, and nothing else.

const { argv, env, stdout, stderr } = process;

// `muster … | head` ends us without a fuss; any other fault of a stream is one.
stderr.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  const why = error.code === 'ENOSPC' ? 'no space is left' : error.message;
  stderr.write(`error: standard output cannot be written: ${why}\n`);
  process.exit(1);
});

// An end before the answer is none that went well.
process.exitCode = 1;
void runProgram(argv.slice(2), {
  env,
  // Opened when it is read: few verbs read it, and its code costs a start several milliseconds.
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
      process.off('SIGINT', heard);
      // Ended by the signal itself, so that a shell sees why.
      process.kill(process.pid, 'SIGINT');
    };
    const heard = () => {
      if (say(leave) !== 'stay') leave();
    };
    process.on('SIGINT', heard);
    return () => process.off('SIGINT', heard);
  },
  onEnd: (say) => {
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
    const release = () => {
      for (const signal of signals) process.off(signal, heard);
    };
    const heard = (signal: NodeJS.Signals) => {
      release();
      try {
        say();
      } catch {
        // The terminal is gone: there is nothing left to put right.
      }
      process.kill(process.pid, signal);
    };
    for (const signal of signals) process.on(signal, heard);
    return release;
  },
}).then((exit) => {
  process.exitCode = exit;
  // Whoever completes a line does not wait for an answer that comes too late.
  if (argv[2] === '__complete') process.exit();
});
