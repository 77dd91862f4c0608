import type { Command } from 'commander';
import type { Context } from './context.ts';

/** What a verb returns is the exit code, one of `exits` or that of a shell far away; nothing is 0. */
type Verb<A extends unknown[]> = (context: Context, ...args: A) => Promise<number | undefined>;

/** Makes a verb an action of the command line: arguments as declared, then the verb's own options. */
export type Act = <A extends unknown[]>(verb: Verb<A>) => (...args: unknown[]) => Promise<void>;

/** What a file of verbs exports: adds arguments, options and verbs below a noun. */
export type Register = (command: Command, act: Act) => void;
