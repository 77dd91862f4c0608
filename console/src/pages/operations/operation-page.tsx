import { Page } from '../../parts/page.tsx';

export function OperationPage() {
  return <Page title="Operation">{null}</Page>;
}
