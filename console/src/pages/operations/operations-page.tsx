import { Page } from '../../parts/page.tsx';

export function OperationsPage() {
  return <Page title="Operations">{null}</Page>;
}
