function verify(string $secret, array $headers, string $body): bool {
    $key = base64_decode(preg_replace('/^whsec_/', '', $secret));
    $signed = $headers['webhook-id'] . '.' . $headers['webhook-timestamp'] . '.' . $body;
    $expected = base64_encode(hash_hmac('sha256', $signed, $key, true));
    if (abs(time() - (int) $headers['webhook-timestamp']) >= 300) {
        return false;
    }
    foreach (explode(' ', $headers['webhook-signature']) as $one) {
        if (str_starts_with($one, 'v1,') && hash_equals($expected, substr($one, 3))) {
            return true;
        }
    }
    return false;
}
