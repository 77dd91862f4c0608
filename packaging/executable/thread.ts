import { announce, run } from './programs.ts';

// A thread's first program: it comes as text, which says before this what the thread is to run.
announce();
run((globalThis as unknown as { threadProgram: string }).threadProgram);
