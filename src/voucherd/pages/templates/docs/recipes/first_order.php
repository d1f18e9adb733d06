<?php
function call(string $method, string $path, array $headers = [], ?array $body = null): array {
    $headers[] = "Authorization: Bearer " . getenv("KEY");
    $headers[] = "Content-Type: application/json";
    $request = ["method" => $method, "header" => $headers, "ignore_errors" => true];
    $request["content"] = $body === null ? "" : json_encode($body);
    $answer = file_get_contents("{url}/api/1.03/$path", false, stream_context_create(["http" => $request]));
    return json_decode($answer, true) ?? throw new Exception($answer);
}

$cart = ["items" => [["productSlug" => "{slug}", "amount" => 2]], "paymentCurrency" => "EUR"];
$trx = call("POST", "order", [], $cart)["trx"];
$order = call("PATCH", "order/confirm/$trx", ["X-Sandbox-Outcome: finished"]);
foreach ($order["items"][0]["orderLines"] as $line) {
    echo $line["voucherCode"], "\n";
}
