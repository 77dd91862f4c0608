import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { listTerminals } from '@muster/protocol/http';
import { expect } from 'vitest';
import { muster } from '../tools/suite/cli.ts';
import { CuttingProxy } from './cutting-proxy.ts';
import { eventually } from './eventually.ts';
import { test } from './harness.ts';
import { operatorEnvironment, Person } from './person.ts';

test('the CLI passes input to a terminal on an agent, restores the local terminal, and replays the session', async ({
  stage,
  onTestFinished,
}) => {
  const orchestrator = await stage.orchestrator();
  const config = join(stage.folder('config'), 'agent.yml');
  writeFileSync(config, 'remote_terminal: { enabled: true, shell: /bin/sh }\n');
  await stage.agent(orchestrator, 'web-1', { flags: ['--config', config] });
  const proxy = new CuttingProxy(orchestrator.apiPort);
  const env = operatorEnvironment(stage, orchestrator, await proxy.listen());
  const open = `stty -g; ${muster} terminal open web-1; echo "code=$?"; stty -g; echo done`;
  const person = new Person(stage, open, env);
  onTestFinished(() => {
    person.kill();
    proxy.end();
  });

  // The remote shell computes the markers, so that the test does not mistake the echo of a command for its output.
  person.type('PS1="far> "; echo mark$((40 + 2)) grün 東京\r');
  await person.sees('mark42 grün 東京');
  person.resize(101, 37);
  person.type('until [ "$(stty size)" = "37 101" ]; do sleep 0.02; done; echo resi""zed\r');
  await person.sees('resized');
  // Without output processing, as in an editor, a line feed does not return to the first column.
  person.type(`stty -opost; printf 'up%s\\ndown' ward; stty opost; echo\r`);
  await person.sees('upward\ndown');
  person.type('echo slee""ping; sleep 1000\r');
  await person.sees('sleeping');
  person.type('\u0003');
  person.type('echo after=$?\r');
  await person.sees('after=130');

  // Turns on the alternate screen and mouse reporting, like an editor, and breaks the connection.
  person.type(`printf '\\033[?1049h\\033[?1000h\\033[6nEDIT%s' OR; echo\r`);
  await person.sees('EDITOR');
  proxy.drop();
  await person.sees('connection lost, reconnecting …');
  await eventually('the client is attached again', async () => {
    const [session] = await orchestrator.call(listTerminals, { query: { status: 'active' } });
    return session?.attached.length === 1 ? true : null;
  });
  await person.sees('far> ');
  person.type('echo again$((1 + 1))\r');
  await person.sees('again2');

  const [goingOn] = await orchestrator.call(listTerminals, { query: { status: 'active' } });
  const replay = `${muster} terminal replay ${goingOn?.session_id} --speed 1000; echo "code=$?"`;
  const early = new Person(stage, replay, env);
  onTestFinished(() => early.kill());
  await early.sees('again2');
  await early.sees('The session continues.');
  await early.sees('code=0');
  person.type('exit 3\r');
  await person.sees('code=3');
  await person.sees('done');

  const settings = person.shown.match(/[0-9a-f]+(?::[0-9a-f]+){10,}/g) ?? [];
  expect(settings.length).toBe(2);
  expect(settings[1]).toBe(settings[0]);
  const ended = person.shown.slice(0, person.shown.indexOf('code=3'));
  for (const mode of ['1049', '1000'])
    expect(ended.lastIndexOf(`\u001b[?${mode}l`)).toBeGreaterThan(ended.lastIndexOf(`\u001b[?${mode}h`));

  const [session] = await orchestrator.call(listTerminals, {});
  expect(session).toMatchObject({ status: 'closed', attached: [] });
  const looker = new Person(
    stage,
    `${muster} terminal replay ${session?.session_id} --speed 1000; echo "code=$?"; ${muster} terminal open web-1; echo "code=$?"`,
    env,
  );
  onTestFinished(() => looker.kill());
  await looker.sees('mark42 grün 東京');
  await looker.sees('EDITOR');
  await looker.sees('code=0');
  expect(looker.shown).toContain('\u001b[?1049h');
  expect(looker.shown).not.toMatch(/\u001b\[(?:6n|\?1000h)/);
  // After the replay, `~.` leaves the second terminal session.
  looker.type('echo left$((1 + 1))\r');
  await looker.sees('left2');
  looker.type('~');
  looker.type('.');
  await looker.sees('left; the session on web-1 has ended');
  await looker.sees('code=1');
  expect(await orchestrator.call(listTerminals, { query: { status: 'active' } })).toEqual([]);
});
