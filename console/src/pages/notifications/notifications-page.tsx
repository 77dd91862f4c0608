import { Page } from '../../parts/page.tsx';

export function NotificationsPage() {
  return <Page title="Notifications">{null}</Page>;
}
