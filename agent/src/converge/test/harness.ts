import { mkdirSync } from 'node:fs';
import { afterEach, beforeEach } from 'vitest';
import type { EngineOptions } from '../converge-engine.ts';
import { removeDirectory, startAgent, type TestAgent, temporaryDirectory } from './agent.ts';

export interface Harness {
  /** An empty directory for resources. */
  root: string;
  dataDir: string;
  agent: TestAgent;
  /** Stops the agent and restarts it with the same data. */
  restart(options?: Partial<EngineOptions>): Promise<void>;
}

/** Provides each test in the file with a new agent and an empty tree. */
export function useAgent(options: Partial<EngineOptions> = {}): Harness {
  const harness = {} as Harness;
  let home: string;
  beforeEach(async () => {
    home = temporaryDirectory();
    harness.root = `${home}/root`;
    harness.dataDir = `${home}/data`;
    mkdirSync(harness.root);
    mkdirSync(harness.dataDir, { mode: 0o700 });
    harness.agent = await startAgent(harness.dataDir, options);
    harness.restart = async (changed = {}) => {
      await harness.agent.stop();
      harness.agent = await startAgent(harness.dataDir, { ...options, ...changed });
    };
  });
  afterEach(async () => {
    await harness.agent.stop();
    removeDirectory(home);
  });
  return harness;
}
