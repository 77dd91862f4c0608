import { Page } from '../../parts/page.tsx';

export function DriftPage() {
  return <Page title="Drift">{null}</Page>;
}
