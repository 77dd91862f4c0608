import { announce, run } from './programs.ts';

// Entry point of a thread. The thread's source text sets `threadProgram` to the name of the program to run.
announce();
run((globalThis as unknown as { threadProgram: string }).threadProgram);
