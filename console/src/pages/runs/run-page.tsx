import { Page } from '../../parts/page.tsx';

export function RunPage() {
  return <Page title="Run">{null}</Page>;
}
