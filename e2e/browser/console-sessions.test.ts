import { generateKeyPairSync } from 'node:crypto';
import { createServer, get, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { addOperator, listSessions, webLogin } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { selfSigned } from '../../orchestrator/src/identity/certificate.ts';
import { newOperator } from '../client.ts';
import { someTests } from '../some-tests.ts';
import { Tab } from './tab.ts';
import { noBrowser, test } from './test.ts';

const reason = noBrowser();
const heading = (name: string) => ['heading', { level: 1, name }] as const;

/** Serves an empty page over TLS on another port of the orchestrator's host. */
async function startEvil(received: string[]): Promise<{ url: string; server: Server }> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const cert = await selfSigned(privateKey, { commonName: 'evil', hosts: ['127.0.0.1'], days: 1 });
  const key = privateKey.export({ format: 'pem', type: 'pkcs8' });
  const server = createServer({ key, cert }, ({ headers }, response) => {
    received.push(headers.cookie ?? '');
    response.setHeader('content-type', 'text/html').end('<title>evil</title>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

describe.skipIf(reason !== null)(`the session of a browser${reason === null ? '' : ` (${reason})`}`, () => {
  /** These tests do not depend on each other. */
  const testSome = someTests(test, 2, 'console sessions');

  testSome(
    'keeps a console session across reloads, new tabs, and a restart of the orchestrator',
    async ({ tab, orchestrator }) => {
      const { page } = tab;
      await tab.signIn('/modules');
      await page.getByRole(...heading('Modules')).waitFor();
      const paths: string[] = [];
      page.on('request', (request) => paths.push(new URL(request.url()).pathname));
      await page.reload();
      await page.getByRole(...heading('Modules')).waitFor();
      await page.getByText('Live', { exact: true }).waitFor();
      // The page sends the first requests. None of them requests the session.
      expect(paths.filter((path) => path.startsWith('/api/v1/auth/'))).toEqual([]);
      const opened = page.context().waitForEvent('page');
      await page.getByRole('link', { name: 'Agents' }).click({ modifiers: ['Control'] });
      const second = await opened;
      await second.getByRole(...heading('Agents')).waitFor();
      await second.close();
      tab.watch.expects(
        /^failed: GET .*ERR_(CONNECTION|INCOMPLETE|EMPTY|SOCKET|TUNNEL)/,
        /ERR_(CONNECTION|INCOMPLETE|EMPTY|SOCKET|TUNNEL)/,
      );
      await orchestrator.kill9();
      await orchestrator.start();
      await page.reload();
      await page.getByRole(...heading('Modules')).waitFor();
      await page.getByText('Live', { exact: true }).waitFor();
    },
  );

  test('ends a console session in its page immediately when another session ends it', async ({ tab, orchestrator }) => {
    const { page } = tab;
    await tab.signIn('/modules');
    await page.getByText('Live', { exact: true }).waitFor();
    const program = await orchestrator.call(listSessions, {});
    expect(program.map(({ kind }) => kind)).toContain('console');
    await tab.endSession();
    await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
    // A new page has no input to keep.
    await page.reload();
    await page.getByRole('button', { name: 'Open key file' }).waitFor();
  });

  test('lists console sessions, ends one, and signs out everywhere, in all tabs', async ({
    tab,
    browser,
    orchestrator,
  }) => {
    const { page } = tab;
    const eve = newOperator();
    const body = { public_key: eve.publicKey, username: 'eve', role: 'operator' as const };
    await orchestrator.call(addOperator, { body });
    const call = orchestrator.clientFor(eve);
    const other = await Tab.open(browser, orchestrator);
    await other.signIn('/modules', call);
    await tab.signIn('/', call);
    await page.getByRole('button', { name: 'Signed in as eve' }).click();
    await page.getByRole('menuitem', { name: 'Sessions' }).click();
    await page.getByRole(...heading('Sessions')).waitFor();
    const rows = page.getByRole('grid', { name: 'Sessions' }).getByRole('row');
    await rows.filter({ hasText: 'this browser' }).waitFor();
    other.watch.expects(/401/);
    await rows
      .filter({ hasText: 'Chrome' })
      .filter({ hasNotText: 'this browser' })
      .first()
      .getByRole('button', { name: 'End' })
      .click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'End session' }).click();
    await other.page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
    await other.close();
    const second = await tab.another();
    await second.goto(`${tab.url}/modules`);
    await second.getByRole(...heading('Modules')).waitFor();
    tab.watch.expects(/401/);
    await page.getByRole('button', { name: 'Sign out everywhere' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Sign out everywhere' }).click();
    for (const one of [page, second]) await one.getByRole('button', { name: 'Open key file' }).waitFor();
    await second.reload();
    await second.getByRole('button', { name: 'Open key file' }).waitFor();
    expect((await page.context().cookies()).map(({ value }) => value)).toEqual([]);
  });

  test('never mixes two operators in two tabs', async ({ tab, orchestrator }) => {
    const { page } = tab;
    const bob = newOperator();
    const body = { public_key: bob.publicKey, username: 'bob', role: 'operator' as const };
    await orchestrator.call(addOperator, { body });
    await tab.signIn('/modules/new');
    const editor = page.getByRole('textbox', { name: 'Text of the new module' });
    await editor.click();
    await page.keyboard.insertText('name: half\n');
    const second = await tab.another();
    const { url } = await orchestrator.clientFor(bob)(webLogin, {});
    await second.goto(url);
    tab.watch.expects(/401/);
    await second.getByRole('button', { name: 'Sign in', exact: true }).click();
    await second.getByRole('button', { name: 'Signed in as bob' }).waitFor();
    // The first tab keeps its page and sends no requests as the other operator.
    const dialog = page.getByRole('dialog', { name: 'bob signed in' });
    await dialog.waitFor();
    expect(await page.getByText('name: half').count()).toBe(1);
    await dialog.getByRole('button', { name: 'Continue as bob' }).click();
    await page.getByRole('button', { name: 'Signed in as bob' }).waitFor();
    await expect.poll(() => page.getByText('name: half').count()).toBe(0);
    await second.close();
  });

  test('keeps a console session unused by a page on another port of the host, which receives the cookie', async ({
    tab,
    orchestrator,
  }) => {
    const { page } = tab;
    await tab.signIn('/modules');
    const received: string[] = [];
    const { url, server } = await startEvil(received);
    const evil = await tab.another();
    await evil.goto(url);
    await evil.reload();
    const [cookie] = await page.context().cookies();
    expect(received.at(-1)).toContain(cookie?.value);
    const attempt = (expression: string) => evil.evaluate(`${expression}.then((got) => got, () => 'nothing')`);
    const out = `${orchestrator.url}/api/v1/auth/logout`;
    for (const options of [
      "{ method: 'POST', credentials: 'include' }",
      "{ method: 'POST', credentials: 'include', mode: 'no-cors' }",
      "{ method: 'POST', credentials: 'include', headers: { 'muster-page-key': 'x' } }",
    ])
      expect(['nothing', 'opaque']).toContain(await attempt(`fetch('${out}', ${options}).then(({ type }) => type)`));
    for (const method of ['post', 'get']) {
      const answered = evil.waitForResponse((answer) => answer.url().startsWith(out));
      await evil.evaluate(`(() => {
        const form = Object.assign(document.createElement('form'), { action: '${out}', method: '${method}', target: 'f' });
        document.body.append(form, Object.assign(document.createElement('iframe'), { name: 'f' }));
        form.submit();
      })()`);
      expect((await answered).status()).toBe(403);
    }
    // A program that has the cookie can do nothing without the page key.
    const headers = { cookie: `${cookie?.name}=${cookie?.value}`, 'sec-fetch-site': 'same-origin' };
    const replayed = await new Promise((resolve, reject) =>
      get(`${orchestrator.url}/api/v1/auth/session`, { headers, rejectUnauthorized: false }, (answer) =>
        resolve(answer.resume().statusCode),
      ).on('error', reject),
    );
    expect(replayed).toBe(401);
    await evil.close();
    server.closeAllConnections();
    server.close();
    await page.reload();
    await page.getByRole(...heading('Modules')).waitFor();
  });

  testSome(
    'keeps a console session across a reload over plain HTTP on a loopback address',
    async ({ browser, stage }) => {
      const plain = await stage.orchestrator({ flags: ['--no-tls'] });
      const tab = await Tab.open(browser, plain);
      await tab.page.goto(`${plain.url}/modules`);
      const chooser = tab.page.waitForEvent('filechooser');
      await tab.page.getByRole('button', { name: 'Open key file' }).click();
      const pem = plain.operator.privateKey.export({ format: 'pem', type: 'pkcs8' });
      await (await chooser).setFiles({ name: 'key.pem', mimeType: 'text/plain', buffer: Buffer.from(pem) });
      await tab.page.getByRole(...heading('Modules')).waitFor();
      await tab.page.reload();
      await tab.page.getByRole(...heading('Modules')).waitFor();
      expect(tab.watch.faults).toEqual([]);
      await tab.close();
    },
  );

  testSome('keeps no connections open in hidden tabs', async ({ tab }) => {
    const { page } = tab;
    await tab.signIn('/modules');
    await page.getByText('Live', { exact: true }).waitFor();
    const hide = (hidden: boolean) =>
      page.evaluate(`(() => {
        Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
      })()`);
    await hide(true);
    await page.getByText('Connecting', { exact: true }).waitFor();
    await hide(false);
    await page.getByText('Live', { exact: true }).waitFor();
  });
});
