import { listNotifications, type Notification } from '@muster/protocol/http';
import { screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { groupNotifications } from './notification-groups.ts';
import { NotificationGroupRow } from './notification-row.tsx';

const [example] = (listNotifications.example.answer as never as { notifications: [Notification] }).notifications;

/** Renders a notification, and returns its row. */
async function row(part: Partial<Notification>): Promise<HTMLElement> {
  fakeApi();
  const [group] = groupNotifications([{ ...example, ...part }]);
  if (group !== undefined) await renderPart(<NotificationGroupRow group={group} />);
  return screen.getByRole('listitem');
}

test('marks an unread notification at its edge, not in the color of links', async () => {
  const { className } = await row({ read: false });
  expect(className).toContain('shadow-[inset_3px_0_0_var(--text)]');
  expect(className).not.toMatch(/accent|text-muted/);
});

test('shows a notification in a muted color after it was read', async () => {
  const read = await row({ read: true });
  expect(read.className).toContain('text-muted');
  expect(read.className).not.toContain('shadow');
});

test('states the event only once', async () => {
  const { textContent } = await row({ event_type: 'agent.lost', summary: 'agent web-1 is offline', read: true });
  expect(textContent?.match(/offline/g)).toHaveLength(1);
});

test('indicates that a notification was not sent because of a maintenance window', async () => {
  await row({ suppressed: true });
  expect(screen.getByText('maintenance window, not sent').className).toContain('border');
});

test('indicates that the notifications of a group were not sent', async () => {
  fakeApi();
  const [group] = groupNotifications([
    { ...example, suppressed: true },
    { ...example, id: 'x', suppressed: true },
  ]);
  if (group !== undefined) await renderPart(<NotificationGroupRow group={group} />);
  expect(screen.getByText('maintenance window, not sent')).toBeTruthy();
});
