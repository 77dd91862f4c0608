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

describe.skipIf(reason !== null)(`drafts${reason === null ? '' : ` (${reason})`}`, () => {
  test('survive a reload, and are deleted when they are saved or discarded', async ({ tab, orchestrator }) => {
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
    await page.getByText('Restored your unsaved changes.').waitFor();
    expect(await editor.innerText()).toContain('# half a thought');
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
    await page.getByText('Restored your unsaved changes.').waitFor();
    expect(await page.getByLabel('Description').inputValue()).toBe('half a sentence');
    // A sign-out deletes all drafts.
    await page.getByRole('button', { name: 'Signed in as ada' }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Open key file' }).waitFor();
    while ((await drafts()) !== '[]') await page.evaluate('new Promise(requestAnimationFrame)');
  });
});
