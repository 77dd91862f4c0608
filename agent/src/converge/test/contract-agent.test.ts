import { afterEach, beforeEach, expect, test } from 'vitest';
import { removeDirectory, temporaryDirectory } from './agent.ts';
import { type ContractAgent, contractAgent } from './contract-agent.ts';
import { operation } from './desired.ts';

let home: string;
let agent: ContractAgent;
beforeEach(async () => {
  home = temporaryDirectory();
  agent = await contractAgent(`${home}/data`);
});
afterEach(async () => {
  await agent.stop();
  removeDirectory(home);
});

test('runs more operations than the agent may have open at once', async () => {
  for (let i = 0; i < 70; i++) expect((await agent.run(operation('plan'))).finished.status).toBe('succeeded');
});
