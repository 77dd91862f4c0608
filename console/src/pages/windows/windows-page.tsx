import { Page } from '../../parts/page.tsx';

export function WindowsPage() {
  return <Page title="Maintenance windows">{null}</Page>;
}
