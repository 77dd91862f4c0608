import { Page } from '../../parts/page.tsx';

export function ReconcilePage() {
  return <Page title="Reconcile">{null}</Page>;
}
