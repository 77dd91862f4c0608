import { createAssignment, uploadModule } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { noBrowser, test } from './test.ts';

const reason = noBrowser();

const moduleNamed = (name: string) =>
  JSON.stringify({
    name,
    supports: [{ platform: 'linux' }],
    resources: [{ resource: { 'package-apt': { name: 'jq' } } }],
  });

/** Stored drafts, as text. */
const stored = `new Promise((resolve) => {
  const request = indexedDB.open('muster', 1);
  request.onupgradeneeded = () => request.result.createObjectStore('drafts');
  request.onsuccess = () => {
    const all = request.result.transaction('drafts').objectStore('drafts').getAll();
    all.onsuccess = () => {
      request.result.close();
      resolve(JSON.stringify(all.result));
    };
  };
})`;

/** A form in a dialog: how to open it, and the text to type, by label. */
interface Form {
  readonly path: string;
  readonly open: string;
  readonly dialog: string;
  readonly typed: Readonly<Record<string, string>>;
  /** The label of a value that must not be stored. */
  readonly secret?: string;
}

const forms: readonly Form[] = [
  {
    ...{ path: '/secrets', open: 'New secret', dialog: 'New secret', secret: 'Value' },
    typed: { Name: 'db_password', 'Description (optional)': 'of the half-written shop' },
  },
  {
    ...{ path: '/channels', open: 'Add channel', dialog: 'Add channel', secret: 'Signing secret (optional)' },
    typed: { Name: 'half-pager', Address: 'https://pager.example.net/hook' },
  },
  {
    ...{ path: '/windows', open: 'New window', dialog: 'New maintenance window' },
    typed: { Reason: 'half of the switches', Ends: '2031-02-03T04:05' },
  },
  {
    ...{ path: '/operators', open: 'Add operator', dialog: 'Add operator' },
    typed: { Name: 'half-grace', 'Public key': 'ssh-ed25519 AAAA' },
  },
  {
    ...{ path: '/enrolment', open: 'New token', dialog: 'New enrollment token' },
    typed: { 'Number of machines': '7', 'Tags (optional)': 'role=half' },
  },
];

describe.skipIf(reason !== null)(`drafts${reason === null ? '' : ` (${reason})`}`, () => {
  test('keeps drafts across a reload, and deletes them when they are saved or discarded', async ({
    tab,
    orchestrator,
  }) => {
    const { page } = tab;
    page.on('dialog', (dialog) => void dialog.accept());
    const drafts = async () => String(await page.evaluate(stored));
    const isStored = async (text: string) => {
      while (!(await drafts()).includes(text)) await page.evaluate('new Promise(requestAnimationFrame)');
    };
    await orchestrator.call(uploadModule, { body: { name: 'kept', content: moduleNamed('kept') } });
    await tab.signIn('/modules/kept');
    const editor = page.getByRole('textbox', { name: 'Text of kept' });
    await editor.click();
    await page.keyboard.press('Control+End');
    await page.keyboard.insertText('\n# half a thought');
    await isStored('half a thought');
    await page.reload();
    // The message about the restored changes disappears after some seconds, so a busy machine may miss it.
    await expect.poll(() => editor.innerText()).toContain('# half a thought');
    await page.getByText('unsaved changes', { exact: false }).first().waitFor();
    await page.getByRole('button', { name: 'Save…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page.getByText('Revision 2').first().waitFor();
    while ((await drafts()) !== '[]') await page.evaluate('new Promise(requestAnimationFrame)');

    await tab.go('/modules/new');
    const fresh = page.getByRole('textbox', { name: 'Text of the new module' });
    await fresh.click();
    await page.keyboard.insertText('name: half\n');
    await isStored('name: half');
    await page.reload();
    await fresh.getByText('half').waitFor();
    await page.getByRole('link', { name: 'Agents', exact: true }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Discard and leave' }).click();
    await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor();
    while ((await drafts()) !== '[]') await page.evaluate('new Promise(requestAnimationFrame)');

    await orchestrator.call(createAssignment, { body: { name: 'base', modules: ['kept'], selector: 'role=web' } });
    await tab.go('/assignments/base?tab=edit');
    await page.getByLabel('Description').fill('half a sentence');
    await isStored('half a sentence');
    await page.reload();
    await expect.poll(() => page.getByLabel('Description').inputValue()).toBe('half a sentence');
    // A sign-out deletes all drafts.
    await page.getByRole('button', { name: 'Signed in as ada' }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Open key file' }).waitFor();
    while ((await drafts()) !== '[]') await page.evaluate('new Promise(requestAnimationFrame)');
  });

  test('keeps the input of dialogs across a reload, except for secret values', async ({ tab }) => {
    const { page } = tab;
    const drafts = async () => String(await page.evaluate(stored));
    const untilStored = async (holds: (text: string) => boolean) => {
      while (!holds(await drafts())) await page.evaluate('new Promise(requestAnimationFrame)');
    };
    await tab.signIn();
    for (const { path, open, dialog: name, typed, secret } of forms) {
      await tab.go(path);
      await page.getByRole('button', { name: open }).first().click();
      const dialog = page.getByRole('dialog', { name });
      for (const [label, text] of Object.entries(typed)) await dialog.getByLabel(label, { exact: true }).fill(text);
      if (secret !== undefined) await dialog.getByLabel(secret, { exact: true }).fill('hunter2hunter2');
      await untilStored((text) => Object.values(typed).every((each) => text.includes(each)));
      expect(await drafts(), path).not.toContain('hunter2');
      await page.reload();
      for (const [label, text] of Object.entries(typed))
        await expect
          .poll(() => dialog.getByLabel(label, { exact: true }).inputValue(), { message: `${path}: ${label}` })
          .toBe(text);
      if (secret !== undefined) expect(await dialog.getByLabel(secret, { exact: true }).inputValue(), path).toBe('');
      await dialog.getByRole('button', { name: 'Cancel' }).click();
      await untilStored((text) => text === '[]');
    }
  });
});
