import { readFileSync } from 'node:fs';
import type { OperationMessage } from '@muster/protocol/wire';
import { startAgent } from './agent.ts';
import { isStep, unhurried } from './cut.ts';

/**
 * An agent that kills itself (SIGKILL) at one durable step. Arguments: data directory; JSON file with operations;
 * number of the crash point at which to die, counted from 1, or 0 for never. Prints the name of each passed crash
 * point, and finally `done`.
 */
const [dataDir = '', file = '', at = '0'] = process.argv.slice(2);
const operations = JSON.parse(readFileSync(file, 'utf8')) as OperationMessage[];
let passed = 0;
let armed = false;
const agent = await startAgent(dataDir, {
  clock: unhurried,
  crashPoint(name) {
    if (!armed || !isStep(name)) return;
    passed++;
    process.stdout.write(`${name}\n`);
    if (passed === Number(at)) process.kill(process.pid, 'SIGKILL');
  },
});
for (const [i, operation] of operations.entries()) {
  armed = i === operations.length - 1;
  await agent.run(operation);
}
await agent.stop();
process.stdout.write('done\n');
