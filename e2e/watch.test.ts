import { putTag } from '@muster/protocol/http';
import { expect } from 'vitest';
import { muster } from '../tools/suite/cli.ts';
import { test } from './harness.ts';
import { operatorEnvironment } from './person.ts';
import { missing } from './requirements.ts';
import { Tmux } from './tmux.ts';

test('muster without a command shows the fleet, and --watch redraws a list after each change until Ctrl-C', async ({
  stage,
  skip,
  onTestFinished,
}) => {
  const reason = missing('linux', 'tmux');
  if (reason !== null) skip(reason);
  const orchestrator = await stage.orchestrator();
  const agent = await stage.agent(orchestrator, 'web-1');
  const env = operatorEnvironment(stage, orchestrator);
  const window = await Tmux.start(stage, env, { cols: 100, rows: 24 }, onTestFinished);
  await window.seesLine('near>');
  await window.enter(`clear; ${muster}`);
  await window.seesLine('agents    1 approved, 1 connected');
  await window.seesLine('  muster agents');

  await window.enter(`clear; ${muster} agents --watch`);
  await window.seesLine('muster agents list · live');
  await window.seesLine('web-1  connected');
  await orchestrator.call(putTag, { params: { node_id: agent.nodeId, key: 'role' }, body: { value: 'canary' } });
  // The list is redrawn in place.
  await window.sees('the new tag in the only row', (lines) => {
    const rows = lines.filter((line) => line.startsWith('web-1'));
    return rows.length === 1 && rows[0]!.includes('role=canary');
  });
  await window.press('C-c');
  await window.sees('the prompt', (lines) => lines.some((line) => line.startsWith('near>')));
  await window.enter('echo code=$?');
  await window.seesLine('code=130');
  expect(await window.modes()).toContain('alternate_on=0 mouse_any_flag=0 cursor_flag=1');
});
