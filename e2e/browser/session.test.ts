import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Client } from '@muster/protocol/client';
import {
  addOperator,
  createAssignment,
  getModule,
  getStatus,
  listAudit,
  openTerminal,
  removeAssignment,
  removeModule,
  uploadModule,
  webLogin,
} from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { newOperator } from '../client.ts';
import { eventually } from '../eventually.ts';
import { operatorEnvironment } from '../person.ts';
import { startRelay } from '../relay.ts';
import { someTests } from '../some-tests.ts';
import type { Orchestrator, Stage } from '../stage.ts';
import { noBrowser, test } from './test.ts';

const reason = noBrowser();

function keyFile(stage: Stage, { operator }: Orchestrator): string {
  const path = join(stage.folder('keys'), 'key.pem');
  writeFileSync(path, operator.privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
  return path;
}

const moduleNamed = (name: string) =>
  JSON.stringify({
    name,
    supports: [{ platform: 'linux' }],
    resources: [{ resource: { 'package-apt': { name: 'jq' } } }],
  });

test.skipIf(reason !== null)(
  'the browser fixture reports a page that repeats a read even though nothing has changed',
  async ({ tab }) => {
    const { page, watch } = tab;
    watch.expects(/requested twice within \d+ ms/, /answered 401/, /status of 401/);
    await page.goto(`${tab.url}/`);
    const reported = page.waitForEvent('console', (message) => /requested twice within .*modules/.test(message.text()));
    await page.evaluate("Promise.all([fetch('/api/v1/modules'), fetch('/api/v1/modules')]).then(() => null)");
    await reported;
    const errors: string[] = [];
    page.on('console', (message) => errors.push(message.text()));
    // After the response to a write, the page may repeat a read.
    await page.evaluate(
      "fetch('/api/v1/auth/logout', { method: 'POST' }).then(() => fetch('/api/v1/tags')).then(() => null)",
    );
    await page.evaluate(
      "fetch('/api/v1/auth/logout', { method: 'POST' }).then(() => fetch('/api/v1/tags')).then(() => null)",
    );
    expect(errors.filter((text) => text.includes('requested twice'))).toEqual([]);
  },
);

describe.skipIf(reason !== null)(`a console session${reason === null ? '' : ` (${reason})`}`, () => {
  /** These tests do not depend on each other. */
  const testSome = someTests(test, 2, 'use of the console');

  test('the console signs in with a key file by keyboard and does not send the key', async ({
    tab,
    stage,
    orchestrator,
  }) => {
    const { page } = tab;
    const sent: string[] = [];
    page.on('request', (request) => sent.push(request.postData() ?? ''));
    await page.goto(`${tab.url}/agents`);
    const chooser = page.waitForEvent('filechooser');
    const verified = page.waitForResponse((answer) => answer.url().endsWith('/auth/verify'));
    await tab.press('Tab', page.getByRole('button', { name: 'Open key file' }));
    await page.keyboard.press('Enter');
    await (await chooser).setFiles(keyFile(stage, orchestrator));
    await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    const { d } = orchestrator.operator.privateKey.export({ format: 'jwk' });
    const secret = Buffer.from(d as string, 'base64url');
    for (const body of sent) {
      expect(body).not.toContain('PRIVATE');
      expect(body).not.toContain(secret.toString('hex'));
      expect(body).not.toContain(secret.toString('base64'));
    }
    // Scripts can read neither the cookie nor the sign-in token. The storage contains only the page key, which is
    // useless without the cookie.
    const { token } = (await (await verified).json()) as { token: string };
    const readable = String(
      await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])'),
    );
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ httpOnly: true, secure: true, sameSite: 'Strict', path: '/' });
    for (const hidden of [token, cookie?.value, secret.toString('hex'), secret.toString('base64')])
      expect(readable).not.toContain(hidden);
  });

  test('a sign-in link from the CLI works only once', async ({ tab, stage, orchestrator }) => {
    const program = stage.run('web-login', ['web-login'], operatorEnvironment(stage, orchestrator));
    await program.ended;
    const link = program.lastLines(10).find((line) => line.startsWith('https://')) as string;
    expect(new URL(link).origin).toBe(tab.url);
    await tab.page.goto(link);
    // Neither opening the link nor pressing Enter without moving the focus signs the operator in.
    await tab.page.getByRole('heading', { name: 'Sign in as ada?' }).waitFor();
    await tab.page.keyboard.press('Enter');
    await tab.page.getByRole('heading', { name: 'Sign in as ada?' }).waitFor();
    expect(await tab.page.getByRole('navigation', { name: 'Main' }).count()).toBe(0);
    await tab.press('Tab', tab.page.getByRole('button', { name: 'Sign in', exact: true }));
    await tab.page.keyboard.press('Enter');
    await tab.page.getByRole('navigation', { name: 'Main' }).waitFor();
    expect(tab.page.url()).toBe(`${tab.url}/`);
    // Opens the same link again after a sign-out.
    tab.watch.expects(/40\d.*redeem|40\d \(/);
    await tab.page.getByRole('button', { name: 'Signed in as ada' }).click();
    await tab.page.getByRole('menuitem', { name: 'Sign out' }).click();
    await tab.page.getByRole('button', { name: 'Open key file' }).waitFor();
    await tab.page.goto('about:blank');
    await tab.page.goto(link);
    await tab.page.getByRole('alert').waitFor();
    await tab.page.getByRole('button', { name: 'Open key file' }).waitFor();
  });

  test('the orchestrator refuses a console sign-in that another server relays', async ({
    tab,
    stage,
    orchestrator,
  }) => {
    const relay = await startRelay(orchestrator.url);
    const page = await tab.another();
    await page.goto(relay.url);
    const chooser = page.waitForEvent('filechooser');
    await page.getByRole('button', { name: 'Open key file' }).click();
    const answered = page.waitForResponse((answer) => answer.url().endsWith('/auth/verify'));
    await (await chooser).setFiles(keyFile(stage, orchestrator));
    expect((await answered).status()).toBe(403);
    await page.getByRole('alert').getByText(`the signature is for origin:${relay.url}`).waitFor();
    expect(relay.tokens).toEqual([]);
    await page.close();
    relay.close();
  });

  test('the console does not sign in with a link that the operator declines', async ({ tab, orchestrator }) => {
    const { page } = tab;
    const { url } = await orchestrator.call(webLogin, {});
    await page.goto(url);
    const out = page.waitForResponse((answer) => answer.url().endsWith('/auth/logout'));
    await page.getByRole('button', { name: 'Cancel' }).click();
    expect((await out).status()).toBe(204);
    await page.getByRole('button', { name: 'Open key file' }).waitFor();
    const { events } = await orchestrator.call(listAudit, { query: { category: 'auth', limit: '2' } });
    expect(events.map(({ event_type }) => event_type)).toEqual(['auth.signed_out', 'auth.signed_in']);
  });

  test('a sign-in link replaces the current session only after confirmation', async ({ tab, orchestrator }) => {
    const { page } = tab;
    const bob = newOperator();
    const body = { public_key: bob.publicKey, username: 'bob', role: 'operator' as const };
    await orchestrator.call(addOperator, { body });
    const bobs = orchestrator.clientFor(bob);
    /** Opens a sign-in link without a reload, because only the fragment of the URL changes. */
    const openLink = async (call: Client) => {
      const { url } = await call(webLogin, {});
      await page.evaluate("document.body.dataset.loaded = 'once'");
      await page.goto(`${tab.url}/modules/new${new URL(url).hash}`);
      expect(await page.evaluate('document.body.dataset.loaded')).toBe('once');
      return `${tab.url}/modules/new${new URL(url).hash}`;
    };
    const signInDialog = (name: string) => page.getByRole('dialog', { name: `Sign in as ${name}?` });
    await tab.signIn('/modules/new');
    const editor = page.getByRole('textbox', { name: 'Text of the new module' });
    await editor.click();
    await page.keyboard.insertText('name: half\n');

    // Keys that the operator types while the dialog is opening do not confirm it.
    await openLink(bobs);
    await signInDialog('bob').waitFor();
    expect(page.url()).toBe(`${tab.url}/modules/new`);
    await page.keyboard.type('ab ');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Escape');
    await signInDialog('bob').getByText('You are signed in as ada').waitFor();
    // A second link replaces the first one and revokes its sign-in session.
    const out = () => page.waitForResponse((answer) => answer.url().endsWith('/auth/logout'));
    let refused = out();
    const used = await openLink(bobs);
    expect((await refused).status()).toBe(204);
    await signInDialog('bob').waitFor();
    refused = out();
    await tab.press('Tab', signInDialog('bob').getByRole('button', { name: 'Cancel' }));
    await page.keyboard.press('Enter');
    expect((await refused).status()).toBe(204);
    await signInDialog('bob').waitFor({ state: 'hidden' });
    expect(await editor.innerText()).toContain('name: half');
    await page.getByText('Live', { exact: true }).waitFor();

    // A used link neither signs in nor revokes a sign-in session.
    tab.watch.expects(/^answered 401: POST .*redeem/, /^console: .* status of 401 .*redeem/);
    await page.goto(used);
    const failed = page.getByRole('dialog', { name: 'Sign-in with this link failed' });
    await failed.getByRole('alert').waitFor();
    expect(page.url()).toBe(`${tab.url}/modules/new`);
    await page.keyboard.press('Escape');
    await failed.waitFor({ state: 'hidden' });

    // Unsaved input is kept if the same operator signs in.
    await openLink(orchestrator.call);
    refused = out();
    await signInDialog('ada').getByRole('button', { name: 'Sign in' }).click();
    expect((await refused).status()).toBe(204);
    await signInDialog('ada').waitFor({ state: 'hidden' });
    expect(await editor.innerText()).toContain('name: half');

    // Unsaved input is discarded if a different operator signs in.
    await openLink(bobs);
    refused = out();
    await signInDialog('bob').getByRole('button', { name: 'Sign in' }).click();
    expect((await refused).status()).toBe(204);
    await page.getByRole('button', { name: 'bob' }).waitFor();
    await editor.waitFor();
    expect(await editor.innerText()).not.toContain('half');
    const { events } = await orchestrator.call(listAudit, { query: { category: 'auth', limit: '3' } });
    expect(events.map(({ event_type, actor }) => `${event_type} ${actor.name}`)).toEqual([
      'auth.console_opened bob',
      'auth.signed_out ada',
      'auth.signed_in bob',
    ]);
  });

  testSome('the console can be navigated by keyboard, and lists its shortcuts', async ({ tab }) => {
    const { page } = tab;
    await tab.signIn();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor({ state: 'hidden' });
    await page.keyboard.press('g');
    await page.keyboard.press('a');
    await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog', { name: 'Search or go to' }).waitFor();
    await page.keyboard.type('audit');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Audit log' }).waitFor();
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor();
  });

  testSome(
    'the console keeps unsaved input when the session expires and the same operator signs in again',
    async ({ tab, stage, orchestrator }) => {
      const { page } = tab;
      await tab.signIn('/modules/new');
      const editor = page.getByRole('textbox', { name: 'Text of the new module' });
      await editor.click();
      await page.keyboard.insertText('name: half\nsupports: [{ platform: linux }]\n');
      await tab.endSession();
      const over = page.getByRole('dialog', { name: 'Your session has ended' });
      await over.waitFor();
      const chooser = page.waitForEvent('filechooser');
      await over.getByRole('button', { name: 'Open key file' }).click();
      await (await chooser).setFiles(keyFile(stage, orchestrator));
      await over.waitFor({ state: 'hidden' });
      await editor.click();
      await page.keyboard.press('Control+End');
      await page.keyboard.insertText('resources: [{ resource: { package-apt: { name: jq } } }]\n');
      await page.keyboard.press('Control+s');
      await page.getByRole('heading', { level: 1, name: 'half' }).waitFor();
      expect(await orchestrator.call(getModule, { params: { name: 'half' } })).toMatchObject({
        content: expect.stringMatching(/^name: half\n.*\nresources: .*jq.*\n$/),
      });
    },
  );

  testSome(
    'the console tolerates a wrong clock, moves the focus on navigation, and keeps input on a click outside a dialog',
    async ({ tab }) => {
      const { page } = tab;
      await page.clock.setSystemTime(Date.now() + 5 * 3_600_000);
      await tab.signIn('/operators');
      await page
        .getByRole('time')
        .getByText(/now|[sm] ago/)
        .first()
        .waitFor();
      await page.getByRole('link', { name: 'Maintenance' }).click();
      await page.getByRole('heading', { level: 1, name: 'Maintenance windows' }).waitFor();
      await eventually('the content has the focus', async () =>
        (await page.evaluate('document.activeElement.id')) === 'content' ? true : null,
      );
      await page.getByRole('button', { name: 'New window' }).first().click();
      const dialog = page.getByRole('dialog', { name: 'New maintenance window' });
      await dialog.getByLabel('Reason').fill('new switches');
      await page.mouse.click(5, 5);
      await page.keyboard.press('Control+k');
      expect(await page.getByRole('dialog').count()).toBe(1);
      expect(await dialog.getByLabel('Reason').inputValue()).toBe('new switches');
    },
  );

  testSome(
    'the console keeps a draft across tabs and the removal of its module, and asks before it discards a form',
    async ({ tab, orchestrator }) => {
      const { page } = tab;
      await orchestrator.call(uploadModule, { body: { name: 'gone', content: moduleNamed('gone') } });
      await orchestrator.call(createAssignment, { body: { name: 'it', modules: ['gone'], selector: 'role=web' } });
      await tab.signIn('/assignments/it?tab=edit');
      await page.getByLabel('Description').fill('half a sentence');
      await page.getByRole('tab', { name: 'Overview' }).click();
      await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel' }).click();
      expect(await page.getByLabel('Description').inputValue()).toBe('half a sentence');
      await page.getByLabel('Description').fill('');
      await orchestrator.call(removeAssignment, { params: { name: 'it' } });

      await tab.go('/modules/gone');
      const editor = page.getByRole('textbox', { name: 'Text of gone' });
      await editor.click();
      await page.keyboard.press('Control+End');
      await page.keyboard.insertText('\n# one');
      await page.getByRole('tab', { name: 'Order' }).click();
      await editor.waitFor({ state: 'detached' });
      await page.getByRole('tab', { name: 'Editor' }).click();
      await editor.click();
      await page.keyboard.press('Control+z');
      expect(await editor.innerText()).not.toContain('# one');
      await page.keyboard.press('Control+y');
      expect(await editor.innerText()).toContain('# one');
      tab.watch.expects(/^answered 404: GET .*\/(gone|it)/, /^console: .* status of 404 /);
      await orchestrator.call(removeModule, { params: { name: 'gone' } });
      await page.getByText('This module was removed').waitFor();
      await page.keyboard.press('Control+s');
      await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
      await page.getByText('This module was removed').waitFor({ state: 'hidden' });
      expect(await orchestrator.call(getModule, { params: { name: 'gone' } })).toMatchObject({
        content: expect.stringMatching(/# one$/),
      });
      await orchestrator.call(removeModule, { params: { name: 'gone' } });
    },
  );

  testSome(
    'the console reports that the orchestrator does not respond, and reconnects without a reload',
    async ({ tab, orchestrator }) => {
      const { page } = tab;
      await tab.signIn('/modules');
      await page.getByText('Live', { exact: true }).waitFor();
      const search = async (text: string) => {
        await page.keyboard.press('Control+k');
        await page.getByRole('combobox', { name: 'Search or go to' }).fill(text);
      };
      // The search loads the module list, which is empty.
      await search('meanwhile');
      await page.getByText('No results').waitFor();
      await page.keyboard.press('Escape');
      tab.watch.expects(
        /^failed: GET .*ERR_(CONNECTION|INCOMPLETE|EMPTY|SOCKET|TUNNEL)/,
        /ERR_(CONNECTION|INCOMPLETE|EMPTY|SOCKET|TUNNEL)/,
      );
      await orchestrator.kill9();
      await page.getByText('The orchestrator is not responding').waitFor();
      await orchestrator.start();
      await orchestrator.call(uploadModule, { body: { name: 'meanwhile', content: moduleNamed('meanwhile') } });
      await page.getByText('The orchestrator is not responding').waitFor({ state: 'hidden' });
      await page.getByText('Live', { exact: true }).waitFor();
      // The module that was created during the outage appears.
      await search('meanwhile');
      await page.getByRole('option', { name: 'meanwhile' }).waitFor();
    },
  );

  test('the orchestrator refuses requests from a page with another origin', async ({ tab, orchestrator, stage }) => {
    const agent = await stage.agent(orchestrator, 'web-1', { flags: ['--config', terminals(stage)] });
    const { ws_url } = await orchestrator.call(openTerminal, { params: { node_id: agent.nodeId } });
    const server = createServer((_, response) =>
      response.setHeader('content-type', 'text/html').end('<title>evil</title>'),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const page = await tab.another();
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const attempt = (expression: string) => page.evaluate(`${expression}.then((got) => got, () => 'nothing')`);
    const status = `${orchestrator.url}/api/v1/status`;
    expect(await orchestrator.call(getStatus, {})).toMatchObject({ status: 'ok' });
    expect(await attempt(`fetch('${status}').then((answer) => answer.text())`)).toBe('nothing');
    expect(
      await attempt(`fetch('${status}', { headers: { authorization: 'Bearer x' } }).then((answer) => answer.text())`),
    ).toBe('nothing');
    expect(await attempt(`fetch('${orchestrator.url}/').then((answer) => answer.text())`)).toBe('nothing');
    const socket = `new Promise((resolve) => {
      const socket = new WebSocket('${orchestrator.url.replace('https', 'wss')}${ws_url}');
      socket.onopen = () => resolve('open');
      socket.onclose = () => resolve('nothing');
    })`;
    expect(await attempt(socket)).toBe('nothing');
    // Another page cannot show the console in a frame.
    await page.evaluate(
      `document.body.append(Object.assign(document.createElement('iframe'), { src: '${orchestrator.url}/' }))`,
    );
    const frame = await eventually('the frame is loaded', async () => page.frames()[1] ?? null);
    await frame.waitForLoadState();
    expect(await frame.locator('#root').count()).toBe(0);
    server.closeAllConnections();
    server.close();
  });
});

function terminals(stage: Stage): string {
  const path = join(stage.dir, 'terminals.yaml');
  writeFileSync(path, 'remote_terminal: { enabled: true, shell: /bin/sh }\n');
  return path;
}
