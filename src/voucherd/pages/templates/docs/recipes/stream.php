<?php
$request = ["header" => ["Authorization: Bearer " . getenv("KEY")], "timeout" => 30];
$answer = fopen("{url}/api/1.03/event/stream", "r", false, stream_context_create(["http" => $request]));
while (($line = fgets($answer)) !== false) {
    if (str_starts_with($line, "data: ")) {
        echo substr($line, 6);
    }
}
